package prompt

// unknownWindow is the context window of a model whose own nobody configured, in tokens.
const unknownWindow = 8192

// Budget is how many tokens may be sent to a model with a context window, 0 when it is
// unknown: the window less the room for the answer (answer tokens if the request asks
// for so many, else the larger of 1,000 and 2 %) less 3 % (RULES B1).
func Budget(window, answer int) int {
	window = known(window)
	if answer <= 0 {
		answer = max(1000, window/50)
	}
	return max(0, window-answer-(window*3+99)/100)
}

// Cap is how long an answer is asked for where the wire demands a length and nobody
// named one: as long as usual, and no more than a quarter of the window. What is asked
// for is what Budget has to leave room for (RULES B1).
func Cap(window, usual int) int { return min(usual, known(window)/4) }

func known(window int) int {
	if window <= 0 {
		return unknownWindow
	}
	return window
}

// Fitted is what is sent of a transcript.
type Fitted struct {
	Messages []Message
	Dropped  int // turns that were left out
	Tokens   int // the estimate of all that is sent, tools included
}

// Fit leaves out whole turns, the oldest first, until messages and tools fit into a
// budget; false when they do not even then. What stands up to the first user message,
// and the newest turn, always stay. A turn is an answer of the model with the messages
// before it that nobody has answered and the results of its calls, so that no result
// loses its call (RULES B2, B3). It changes nothing of its input.
func Fit(messages []Message, tools []Definition, budget int, g Gauge) (Fitted, bool) {
	head := headOf(messages)
	turns := turnsOf(messages[head:])
	fixed := float64(g.Tools(tools))
	sum := fixed + float64(g.Messages(messages[:head]))
	costs := make([]float64, len(turns))
	for i, turn := range turns {
		costs[i] = float64(g.Messages(turn))
		sum += costs[i]
	}
	dropped := 0
	for ; int(sum) > budget && dropped < len(turns)-1; dropped++ {
		sum -= costs[dropped]
	}
	out := Fitted{Dropped: dropped, Tokens: int(sum)}
	if dropped == 0 {
		out.Messages = messages
		return out, out.Tokens <= budget
	}
	out.Messages = append(out.Messages, messages[:head]...)
	for _, turn := range turns[dropped:] {
		out.Messages = append(out.Messages, turn...)
	}
	return out, out.Tokens <= budget
}

// Admits reports whether a section, which messages hold already, may join them: what is
// sent when every turn but the newest is left out must leave a tenth of the budget, so
// that what was admitted can be sent for as long as the run goes on (RULES B4).
func Admits(messages []Message, tools []Definition, budget int, g Gauge) bool {
	head := headOf(messages)
	least := g.Tools(tools) + g.Messages(messages[:head])
	if turns := turnsOf(messages[head:]); len(turns) > 0 {
		least += g.Messages(turns[len(turns)-1])
	}
	return least <= budget-budget/10
}

// headOf is how many messages stand up to and with the first of the user's.
func headOf(messages []Message) int {
	for i, m := range messages {
		if m.Role == User {
			return i + 1
		}
	}
	return len(messages)
}

// turnsOf cuts messages before every message that follows an answer and its results.
func turnsOf(messages []Message) [][]Message {
	var turns [][]Message
	begin, answered := 0, false
	for i, m := range messages {
		if answered && m.Role != ToolRole {
			turns = append(turns, messages[begin:i])
			begin, answered = i, false
		}
		answered = answered || m.Role == Assistant
	}
	if begin < len(messages) {
		turns = append(turns, messages[begin:])
	}
	return turns
}
