package provider

import (
	"bufio"
	"errors"
	"io"
)

var errLongLine = errors.New("line too long")

// event is one server-sent event: its type, empty when not given, and its data.
type event struct {
	kind string
	data []byte
	cut  bool // the stream ended before the blank line that ends an event
}

// events reads an event stream: lines end in LF, CRLF or CR, comments and unknown
// fields are passed over, several data lines are one value.
type events struct {
	in      *bufio.Reader
	longest int
	afterCR bool
	line    []byte
}

// next returns the next event that carries data. At the end of the stream it
// returns what was begun, since servers leave out the last blank line, and then
// io.EOF; any other error loses the event it fell into.
func (e *events) next() (event, error) {
	var out event
	begun := false
	for {
		line, err := e.readLine()
		if err != nil && !errors.Is(err, io.EOF) {
			return event{}, err
		}
		field, value := splitField(line)
		switch field {
		case "data":
			if begun {
				out.data = append(out.data, '\n')
			}
			out.data = append(out.data, value...)
			begun = true
		case "event":
			out.kind = string(value)
		}
		if len(out.data) > e.longest {
			return event{}, errLongLine
		}
		switch {
		case begun && (err != nil || len(line) == 0):
			out.cut = err != nil
			return out, nil
		case err != nil:
			return event{}, err
		case len(line) == 0:
			out = event{}
		}
	}
}

// splitField takes a line apart at its first colon; one space after it is not part
// of the value. A comment has no field name.
func splitField(line []byte) (field string, value []byte) {
	for i, c := range line {
		if c != ':' {
			continue
		}
		value = line[i+1:]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		return string(line[:i]), value
	}
	return string(line), nil
}

// readLine returns a line without its end. The bytes are good until the next call.
func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		c, err := e.in.ReadByte()
		if err != nil {
			return e.line, err
		}
		swallow := e.afterCR && c == '\n'
		e.afterCR = c == '\r'
		switch {
		case swallow:
		case c == '\n' || c == '\r':
			return e.line, nil
		case len(e.line) >= e.longest:
			return nil, errLongLine
		default:
			e.line = append(e.line, c)
		}
	}
}
