package prompt

import "strings"

// Section is a labelled instruction of the system message: the text of an approved
// version, read exactly as it was approved (RULES L9, L10).
type Section struct {
	Name    string
	Body    string
	Partial bool // names bundled files, which do not exist here
}

// Input is what a run's first messages are made from.
type Input struct {
	// SystemPrompt is the configuration's; it is suppressed when Messages bring a
	// system message of their own.
	SystemPrompt string
	// Snippets follow the system prompt, in this order, marked or not (RULES N1, N5). A
	// system message of the caller's is followed by those that are marked, and by none
	// unless SnippetsInCallers says that the configuration opted in (RULES N2).
	Snippets          []Snippet
	SnippetsInCallers bool
	Sections          []Section
	Catalogue         string // what may be loaded; the end of the system message (RULES L4)
	Fenced            []Fenced
	FencedBytes       int // bound of the whole fenced block (RULES L7)
	NonceKey          []byte
	Messages          []Message
}

// Composed is what the model reads first, and which fenced skills did not fit, by
// their index in Input.Fenced.
type Composed struct {
	Messages []Message
	Dropped  []int
}

// Compose puts snippets, then sections and then the catalogue into the first system
// message, making one if there is none, and the fenced block in front of the first user message (RULES
// L8, L9). It changes nothing of its input.
func Compose(in Input) Composed {
	out := Composed{Messages: make([]Message, len(in.Messages), len(in.Messages)+2)}
	copy(out.Messages, in.Messages)

	out.Messages = withSystem(out.Messages, in)
	block, dropped := fence(in.Fenced, in.FencedBytes, in.NonceKey)
	out.Dropped = dropped
	if block != "" {
		out.Messages = beforeFirstUser(out.Messages, block)
	}
	return out
}

func withSystem(messages []Message, in Input) []Message {
	for i, m := range messages {
		if m.Role == System {
			messages[i].Text = systemText(m.Text, in.forCallers(), in)
			return messages
		}
	}
	text := systemText(in.SystemPrompt, in.Snippets, in)
	if text == "" {
		return messages
	}
	return append([]Message{{Role: System, Text: text}}, messages...)
}

// forCallers are the snippets that may join a caller's own system message: text that
// an administrator read, and only where one asked for it (RULES N2).
func (in Input) forCallers() []Snippet {
	if !in.SnippetsInCallers {
		return nil
	}
	var marked []Snippet
	for _, s := range in.Snippets {
		if s.Marked() {
			marked = append(marked, s)
		}
	}
	return marked
}

// separator stands between the parts of a system message.
const separator = "\n\n"

// systemText is the one order of a system message (RULES L9, L4).
func systemText(head string, snippets []Snippet, in Input) string {
	parts := make([]string, 0, 2+len(snippets)+len(in.Sections))
	if head != "" {
		parts = append(parts, head)
	}
	for _, s := range snippets {
		parts = append(parts, s.Block())
	}
	for _, s := range in.Sections {
		parts = append(parts, s.render())
	}
	if in.Catalogue != "" {
		parts = append(parts, in.Catalogue)
	}
	return strings.Join(parts, separator)
}

// render is the one form of a section. The body is not trimmed, cut or escaped: an
// approved text is read as it was approved.
func (s Section) render() string {
	var b strings.Builder
	b.WriteString("# Instruction: ")
	b.WriteString(oneLine(s.Name))
	b.WriteString("\n\n")
	b.WriteString(s.Body)
	if s.Partial {
		b.WriteString("\n\n(Files that this instruction names under references/, scripts/ or assets/ are not available here.)")
	}
	return b.String()
}

func beforeFirstUser(messages []Message, block string) []Message {
	for i, m := range messages {
		if m.Role == User {
			messages[i].Text = block + "\n\n" + m.Text
			return messages
		}
	}
	return append(messages, Message{Role: User, Text: block})
}

// oneLine folds every run of white space, so that a name stays a label.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
