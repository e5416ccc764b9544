package ws

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Close codes of graphql-transport-ws.
const (
	closeBadRequest    = 4400 // a message that the protocol does not know
	closeUnauthorized  = 4401 // no credential, or an operation before connection_ack
	closeForbidden     = 4403 // the credential is refused, or the rights behind it have changed
	closeInitTimeout   = 4408
	closeDuplicate     = 4409
	closeSecondInit    = 4429
	closeTryAgainLater = 1013 // who is connected cannot be found out just now
)

// Message types of graphql-transport-ws.
const (
	typeInit      = "connection_init"
	typeAck       = "connection_ack"
	typePing      = "ping"
	typePong      = "pong"
	typeSubscribe = "subscribe"
	typeNext      = "next"
	typeError     = "error"
	typeComplete  = "complete"
)

// maxID bounds an operation's id: it is kept, and repeated in every message.
const maxID = 256

type message struct {
	Type    string
	ID      string
	Payload json.RawMessage
}

// object is the payload as JSON, or nil where there is none.
func (m message) object() (json.RawMessage, error) {
	if len(m.Payload) == 0 || string(m.Payload) == "null" {
		return nil, nil
	}
	if m.Payload[0] != '{' {
		return nil, errors.New("the payload of " + m.Type + " must be an object")
	}
	return m.Payload, nil
}

// parseMessage reads one frame. Its errors become close reasons.
func parseMessage(data []byte) (message, error) {
	if !utf8.Valid(data) {
		return message{}, errors.New("a message must be UTF-8")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return message{}, errors.New("a message must be a JSON object")
	}
	m := message{Payload: members["payload"]}
	if err := json.Unmarshal(members["type"], &m.Type); err != nil || m.Type == "" {
		return message{}, errors.New("a message needs a type")
	}
	switch m.Type {
	case typeInit, typePing, typePong:
		return m, nil
	case typeSubscribe, typeComplete:
		if err := json.Unmarshal(members["id"], &m.ID); err != nil || m.ID == "" {
			return message{}, errors.New(m.Type + " needs an id")
		}
		if len(m.ID) > maxID {
			return message{}, fmt.Errorf("an id has at most %d bytes", maxID)
		}
		return m, nil
	}
	return message{}, errors.New("unknown message type")
}

// token reads the credential out of the payload of connection_init:
// {"authorization": "Bearer …"}, the name in any case, or {"token": "…"}.
// given tells a member that is no usable token from none at all.
func token(payload json.RawMessage) (value string, given bool) {
	var members map[string]json.RawMessage
	if len(payload) == 0 || json.Unmarshal(payload, &members) != nil {
		return "", false
	}
	for name, raw := range members {
		bearer := strings.EqualFold(name, "authorization")
		if !bearer && name != "token" || string(raw) == "null" {
			continue
		}
		given = true
		if json.Unmarshal(raw, &value) != nil {
			return "", true
		}
		if bearer {
			scheme, rest, found := strings.Cut(value, " ")
			if !found || !strings.EqualFold(scheme, "bearer") {
				return "", true
			}
			value = rest
		}
		return strings.TrimSpace(value), true
	}
	return "", false
}

// idMessage makes {"id":…,"type":…} and, with a payload, its member.
func idMessage(id, kind string, payload []byte) []byte {
	quoted, _ := json.Marshal(id) // a string always has a JSON form
	buf := make([]byte, 0, len(quoted)+len(kind)+len(payload)+32)
	buf = append(buf, `{"id":`...)
	buf = append(buf, quoted...)
	buf = append(buf, `,"type":"`...)
	buf = append(buf, kind...)
	buf = append(buf, '"')
	if payload != nil {
		buf = append(buf, `,"payload":`...)
		buf = append(buf, payload...)
	}
	return append(buf, '}')
}
