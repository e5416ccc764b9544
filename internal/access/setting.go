package access

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/guard"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"
)

// SettingKind says what text a setting takes.
type SettingKind string

// The kinds.
const (
	IntegerSetting SettingKind = "integer"
	BooleanSetting SettingKind = "boolean"
	ChoiceSetting  SettingKind = "choice"
	RulesSetting   SettingKind = "rules" // a JSON list, see guard.ParseRules
	ToolsSetting   SettingKind = "tools" // names separated by commas, see tool.ParseApprovals
)

// Setting is one setting of the installation: a name that the rules use, and what
// may stand in it.
type Setting struct {
	Name        string
	Kind        SettingKind
	Default     string
	Min, Max    int      // of an integer
	Choices     []string // of a choice
	Unit        string   // of an integer: bytes, seconds, rounds, files
	Description string
	// Unreadable is what counts when a value is set that nobody can read; empty is the default.
	Unreadable string
}

// The names, as the rules write them.
const (
	minTrustLevel         = "skills.minTrustLevel"
	instructionTrustLevel = "skills.instructionTrustLevel"
	skillMaxBytes         = "skills.maxBytes"
	bundleBinding         = "skills.bundleBinding"
	catalogueMaxBytes     = "skills.catalogueMaxBytes"
	defaultMaxIterations  = "agent.defaultMaxIterations"
	guardrails            = "guardrails"
	maxIterations         = "agent.maxIterations"
	leaseSeconds          = "agent.leaseSeconds"
	approvalExpiryHours   = "agent.approvalExpiryHours"
	approvalTools         = "agent.approvalTools"
	privacyLevel          = "privacy.level"
	auditDays             = "retention.auditDays"
	runDays               = "retention.runDays"
	conversationDays      = "retention.conversationDays"
	archivedDays          = "retention.archivedConversationDays"
	notificationDays      = "retention.notificationDays"
	waitingRunDays        = "retention.waitingRunDays"
	drainTimeout          = "server.drainTimeout"
	runWait               = "server.runWait"
	syncMaxFiles          = "sync.maxFiles"
	syncMaxSeconds        = "sync.maxSeconds"
)

var (
	levels   = []string{string(skill.Untrusted), string(skill.Community), string(skill.Verified), string(skill.FirstParty)}
	booleans = []string{"true", "false"}

	privacies = []string{string(run.PrivacyNone), string(run.PrivacyMetadata), string(run.PrivacyRedacted), string(run.PrivacyFull)}
)

// catalogue is every setting there is, by name.
var catalogue = []Setting{
	{
		Name: approvalExpiryHours, Kind: IntegerSetting, Default: "0", Min: 0, Max: 87600, Unit: "hours",
		Description: "How long a run waits for a person when its configuration does not say; then it ends and nothing that waited is carried out. 0 is for ever.",
	},
	{
		Name: approvalTools, Kind: ToolsSetting, Default: "none", Unreadable: "*",
		Description: "Tools that only read and whose calls wait for an approval all the same: names separated by commas, none, or * for all of them. Tools that write always wait.",
	},
	{
		Name: defaultMaxIterations, Kind: IntegerSetting, Default: "5", Min: 1, Max: 1000, Unit: "rounds",
		Description: "How many rounds of model and tools a run gets when neither its caller nor its configuration says.",
	},
	{
		Name: leaseSeconds, Kind: IntegerSetting, Default: "900", Min: 5, Max: 86400, Unit: "seconds",
		Description: "How long a run belongs to the worker that executes it without a sign of life.",
	},
	{
		Name: maxIterations, Kind: IntegerSetting, Default: "20", Min: 1, Max: 1000, Unit: "rounds",
		Description: "The most rounds any run gets, whatever was asked for.",
	},
	{
		Name: guardrails, Kind: RulesSetting, Default: "[]", Unreadable: `[{"name":"unreadable","side":"both","pattern":"(?s).","action":"deny"}]`,
		Description: "What the texts of runs are held against besides secrets, which are always taken out: a JSON list of {name, side: input, output or both, " +
			"pattern: RE2, action: allow, redact, retry, require_approval or deny}, in the order in which they count.",
	},
	{
		Name: privacyLevel, Kind: ChoiceSetting, Default: string(run.PrivacyMetadata), Choices: privacies, Unreadable: string(run.PrivacyNone),
		Description: "How much of what is said the events of a run keep. A run keeps the level it began with, or this one if it is stricter.",
	},
	{
		Name: auditDays, Kind: IntegerSetting, Default: "0", Min: 0, Max: 36500, Unit: "days",
		Description: "How long an audit entry is kept before it is removed; 0 keeps every entry for ever. What remains can still be verified.",
	},
	{
		Name: archivedDays, Kind: IntegerSetting, Default: "90", Min: 0, Max: 36500, Unit: "days",
		Description: "How long an archived conversation is kept before it is deleted; 0 keeps it for ever. Pinned ones stay.",
	},
	{
		Name: conversationDays, Kind: IntegerSetting, Default: "30", Min: 0, Max: 36500, Unit: "days",
		Description: "How long nothing happens in a conversation at rest before it is archived; 0 never archives. Pinned ones stay.",
	},
	{
		Name: notificationDays, Kind: IntegerSetting, Default: "30", Min: 0, Max: 36500, Unit: "days",
		Description: "How long a notification that was delivered or given up stays in the log of its endpoint; 0 keeps it for ever.",
	},
	{
		Name: runDays, Kind: IntegerSetting, Default: "30", Min: 0, Max: 36500, Unit: "days",
		Description: "How long a run is kept after it has ended; 0 keeps every run for ever. It goes with its events; the audit trail keeps its entries.",
	},
	{
		Name: waitingRunDays, Kind: IntegerSetting, Default: "30", Min: 0, Max: 36500, Unit: "days",
		Description: "How long a run waits for a person before it is cancelled; 0 lets it wait for ever.",
	},
	{
		Name: drainTimeout, Kind: IntegerSetting, Default: "10", Min: 0, Max: 3600, Unit: "seconds",
		Description: "How long a server that shuts down waits for the runs it executes before it gives them back to the others.",
	},
	{
		Name: runWait, Kind: IntegerSetting, Default: "50", Min: 1, Max: 600, Unit: "seconds",
		Description: "How long a request that starts or decides a run waits for it before it answers with how the run stands.",
	},
	{
		Name: bundleBinding, Kind: BooleanSetting, Default: "false", Choices: booleans, Unreadable: "true",
		Description: "Whether a change of the files bundled with a skill voids its approval.",
	},
	{
		Name: catalogueMaxBytes, Kind: IntegerSetting, Default: "8000", Min: 0, Max: 10_000_000, Unit: "bytes",
		Description: "The size of the catalogue from which a run's model loads skills; skills beyond it cannot be loaded.",
	},
	{
		Name: instructionTrustLevel, Kind: ChoiceSetting, Default: string(skill.Verified), Choices: levels, Unreadable: string(skill.FirstParty),
		Description: "The level a source must have for an approved version from it to instruct. Never below skills.minTrustLevel.",
	},
	{
		Name: skillMaxBytes, Kind: IntegerSetting, Default: "24000", Min: 1000, Max: 10_000_000, Unit: "bytes",
		Description: "The size of the block that skills which do not instruct share.",
	},
	{
		Name: minTrustLevel, Kind: ChoiceSetting, Default: string(skill.Untrusted), Choices: levels, Unreadable: string(skill.FirstParty),
		Description: "The level a source must have for its skills to be used at all.",
	},
	{
		Name: syncMaxFiles, Kind: IntegerSetting, Default: "500", Min: 1, Max: 100_000, Unit: "files",
		Description: "The most skill files one sync reads.",
	},
	{
		Name: syncMaxSeconds, Kind: IntegerSetting, Default: "120", Min: 1, Max: 3600, Unit: "seconds",
		Description: "How long one sync may take.",
	},
}

func settingNamed(name string) (Setting, bool) {
	i := slices.IndexFunc(catalogue, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}, false
	}
	return catalogue[i], true
}

// accepts says whether text may be set, and otherwise what may.
func (s Setting) accepts(text string) error {
	if s.readable(text) {
		return nil
	}
	switch s.Kind {
	case ToolsSetting:
		_, err := tool.ParseApprovals(text)
		return fault.New(fault.BadInput, "The value of %s is not taken: %s.", s.Name, err)
	case RulesSetting:
		_, err := guard.ParseRules(text)
		return fault.New(fault.BadInput, "The value of %s is not taken: %s.", s.Name, err)
	}
	want := "one of " + strings.Join(s.Choices, ", ")
	if s.Kind == IntegerSetting {
		want = fmt.Sprintf("a whole number of %s from %d to %d", s.Unit, s.Min, s.Max)
	}
	return fault.New(fault.BadInput, "The value of %s must be %s.", s.Name, want)
}

func (s Setting) readable(text string) bool {
	switch s.Kind {
	case ToolsSetting:
		_, err := tool.ParseApprovals(text)
		return err == nil
	case RulesSetting:
		_, err := guard.ParseRules(text)
		return err == nil
	}
	if s.Kind != IntegerSetting {
		return slices.Contains(s.Choices, text)
	}
	n, err := strconv.Atoi(text)
	return err == nil && n >= s.Min && n <= s.Max
}

// layers are the places a setting's text comes from: what was set while the server
// ran, over the configuration file, over the default.
type layers struct{ stored, file map[string]string }

func (a *Access) layers(stored map[string]string) layers { return layers{stored, a.File} }

// text is what is set for a setting, readable or not, and the default when nothing
// is: an empty value is no value.
func (l layers) text(s Setting) string {
	for _, layer := range []map[string]string{l.stored, l.file} {
		if text := strings.TrimSpace(layer[s.Name]); text != "" {
			return text
		}
	}
	return s.Default
}

// read is the text that counts: what is set, or the fallback when nobody can read
// it.
func (l layers) read(name string) string {
	s, _ := settingNamed(name)
	text := l.text(s)
	switch {
	case s.readable(text):
		return text
	case s.Unreadable != "":
		return s.Unreadable
	}
	return s.Default
}

func (l layers) integer(name string) int {
	n, err := strconv.Atoi(l.read(name))
	if err != nil {
		panic("access: the default of " + name + " is no number") // a test reads every default
	}
	return n
}

func (l layers) seconds(name string) time.Duration {
	return time.Duration(l.integer(name)) * time.Second
}

// values reads everything and brings what bounds each other into order.
func (l layers) values() Values {
	admission, instructing := skill.Threshold(l.read(minTrustLevel), l.read(instructionTrustLevel))
	ceiling := l.integer(maxIterations)
	return Values{
		MinTrustLevel:         admission,
		InstructionTrustLevel: instructing,
		SkillMaxBytes:         l.integer(skillMaxBytes),
		CatalogueMaxBytes:     l.integer(catalogueMaxBytes),
		BundleBinding:         l.read(bundleBinding) == "true",
		DefaultMaxIterations:  min(l.integer(defaultMaxIterations), ceiling),
		MaxIterations:         ceiling,
		ApprovalExpiryHours:   l.integer(approvalExpiryHours),
		Lease:                 l.seconds(leaseSeconds),
		DrainTimeout:          l.seconds(drainTimeout),
		RunWait:               l.seconds(runWait),
		SyncMaxFiles:          l.integer(syncMaxFiles),
		SyncMax:               l.seconds(syncMaxSeconds),
		Privacy:               run.Privacy(l.read(privacyLevel)),
		Guardrails:            l.read(guardrails),
		ApprovalTools:         l.read(approvalTools),
		RunDays:               l.integer(runDays),
		ConversationDays:      l.integer(conversationDays),
		ArchivedDays:          l.integer(archivedDays),
		WaitingRunDays:        l.integer(waitingRunDays),
		NotificationDays:      l.integer(notificationDays),
		AuditDays:             l.integer(auditDays),
	}
}

// shown lists every setting with what is in force.
func (l layers) shown() []ShownSetting {
	values := l.values()
	bounded := map[string]string{
		instructionTrustLevel: string(values.InstructionTrustLevel),
		defaultMaxIterations:  strconv.Itoa(values.DefaultMaxIterations),
	}
	list := make([]ShownSetting, 0, len(catalogue))
	for _, s := range catalogue {
		shown := ShownSetting{Setting: s, InForce: l.read(s.Name), Stored: l.stored[s.Name], File: l.file[s.Name]}
		if text, ok := bounded[s.Name]; ok {
			shown.InForce = text
		}
		list = append(list, shown)
	}
	return list
}
