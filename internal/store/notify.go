package store

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/countersign/countersign/internal/change"
)

// payload lists topics, one a line. What does not fit into a notification becomes
// the empty payload, which means that anything may have changed.
func payload(topics []change.Topic) string {
	const most = 7999 // bytes, PostgreSQL's limit
	var out strings.Builder
	for i, topic := range topics {
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(string(topic))
	}
	if out.Len() > most {
		return ""
	}
	return out.String()
}

// channelOf names the channel of a schema: channels are the database's, and several
// schemas may share one.
func channelOf(schema string) string {
	sum := sha256.Sum256([]byte(schema))
	return "countersign_" + hex.EncodeToString(sum[:8])
}
