package access

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
)

// Values are the settings in force, as they are read at every use: a value nobody
// can read was replaced by its fallback, and two settings that bound each other
// were brought into order (RULES A1, R9).
type Values struct {
	MinTrustLevel         skill.TrustLevel
	InstructionTrustLevel skill.TrustLevel // never below MinTrustLevel
	SkillMaxBytes         int
	CatalogueMaxBytes     int
	BundleBinding         bool
	DefaultMaxIterations  int // never above MaxIterations
	MaxIterations         int
	Lease                 time.Duration
	RunWait               time.Duration
	ApprovalExpiryHours   int // 0 is for ever
	DrainTimeout          time.Duration
	SyncMaxFiles          int
	SyncMax               time.Duration
	Privacy               run.Privacy
	Guardrails            string // as guard.ParseRules reads it
	ApprovalTools         string // as tool.ParseApprovals reads it
	RunDays               int    // since a run ended; 0 keeps runs for ever
	ConversationDays      int    // of rest before a conversation is archived; 0 never archives
	ArchivedDays          int    // before an archived conversation is deleted; 0 never deletes
	WaitingRunDays        int    // since a run began to wait; 0 lets runs wait for ever
	NotificationDays      int
	AuditDays             int // 0 keeps audit entries for ever
}

// Values reads the settings in force.
func (a *Access) Values(ctx context.Context) (Values, error) {
	stored, err := a.Store.Settings(ctx)
	if err != nil {
		return Values{}, err
	}
	return a.layers(stored).values(), nil
}

// ShownSetting is a setting as an administrator sees it.
type ShownSetting struct {
	Setting
	InForce string // what is used, after fallbacks
	Stored  string // what was set while the server ran; empty when nothing was
	File    string // what the configuration file says; empty when it says nothing
}

// Settings lists every setting, by name. Administrators only (RULES I8).
func (a *Access) Settings(ctx context.Context, by actor.Actor) ([]ShownSetting, error) {
	if err := needAdministrator(by); err != nil {
		return nil, err
	}
	stored, err := a.Store.Settings(ctx)
	if err != nil {
		return nil, err
	}
	return a.layers(stored).shown(), nil
}

// UpdateSetting sets a setting while the server runs, or takes what was set back
// when value is nil, so that the configuration file or the default holds again.
// Administrators only; audited (RULES I8).
func (a *Access) UpdateSetting(ctx context.Context, by actor.Actor, name string, value *string) (ShownSetting, error) {
	if err := needAdministrator(by); err != nil {
		return ShownSetting{}, err
	}
	setting, known := settingNamed(name)
	if !known {
		return ShownSetting{}, fault.New(fault.NotFound, "There is no setting %q.", clip(name))
	}
	if value != nil {
		if err := setting.accepts(*value); err != nil {
			return ShownSetting{}, err
		}
	}
	for range attempts {
		stored, err := a.Store.Settings(ctx)
		if err != nil {
			return ShownSetting{}, err
		}
		c := a.settingChange(by, setting, stored, value)
		out, err := change.One(ctx, a.Store, c)
		if err != nil {
			return ShownSetting{}, err
		}
		if out.Applied {
			return a.shown(ctx, name)
		}
	}
	return ShownSetting{}, contended("the setting")
}

// settingChange is the change from what is stored to value. It is empty when they
// are the same.
func (a *Access) settingChange(by actor.Actor, setting Setting, stored map[string]string, value *string) change.Change {
	was, isStored := stored[setting.Name]
	id := settingRow(setting.Name)
	c := change.Change{Audit: []audit.Entry{
		audit.Record(a.World, by, audit.SettingChanged).With("name", setting.Name).
			With("from", cmp.Or(was, a.File[setting.Name], setting.Default)),
	}}
	switch {
	case value == nil && !isStored, value != nil && isStored && *value == was:
		return change.Change{}
	case value == nil:
		c.Deletes = []change.Delete{{Table: settingsTable, ID: id, If: []change.Value{settingValue.Is(was)}}}
		c.Audit[0] = c.Audit[0].With("to", cmp.Or(a.File[setting.Name], setting.Default)).With("takenBack", true)
		return c
	case isStored:
		c.Updates = []change.Update{{
			Table: settingsTable, ID: id, If: []change.Value{settingValue.Is(was)}, Set: []change.Value{settingValue.To(*value)},
		}}
	default:
		c.Inserts = []change.Insert{{Table: settingsTable, Row: []change.Value{
			settingID.To(id), settingName.To(setting.Name), settingValue.To(*value),
		}}}
	}
	c.Audit[0] = c.Audit[0].With("to", *value)
	return c
}

func (a *Access) shown(ctx context.Context, name string) (ShownSetting, error) {
	stored, err := a.Store.Settings(ctx)
	if err != nil {
		return ShownSetting{}, err
	}
	for _, s := range a.layers(stored).shown() {
		if s.Name == name {
			return s, nil
		}
	}
	return ShownSetting{}, fault.New(fault.NotFound, "There is no setting %q.", clip(name))
}

// CheckFile refuses setting names that the configuration file should not hold and
// values it could not mean. What it lets pass is checked again on reading
// (RULES I8).
func CheckFile(file map[string]string) error {
	for name, value := range file {
		setting, known := settingNamed(name)
		if !known {
			return fault.New(fault.BadInput, "The configuration file names a setting %q that does not exist.", clip(name))
		}
		if err := setting.accepts(value); err != nil {
			return err
		}
	}
	return nil
}

// settingRow is the id of a setting's row: settings are keyed by name, and a row
// that can be named without being read can be guarded without a query.
func settingRow(name string) uuid.UUID { return uuid.NewSHA1(keyedRows, []byte("setting "+name)) }
