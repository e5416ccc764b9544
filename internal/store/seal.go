package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Key encrypts at rest. Its id stands before everything it sealed, so that keys
// can be changed: new values are sealed with the first key, old ones are opened
// with whichever key sealed them.
type Key struct {
	ID     string
	Secret [32]byte
}

var keyID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// ParseKeys reads a list of keys, `id:base64(32 bytes)`, separated by commas or
// white space.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	for i, item := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' || r == '\r' }) {
		id, encoded, found := strings.Cut(item, ":")
		if !found || !keyID.MatchString(id) {
			return nil, fmt.Errorf("encryption key %d is not written id:base64 with an id of letters, digits, - and _", i+1)
		}
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(secret) != 32 {
			return nil, fmt.Errorf("encryption key %q is not the base64 of 32 bytes", id)
		}
		keys = append(keys, Key{ID: id, Secret: [32]byte(secret)})
	}
	return keys, nil
}

// String is the key as ParseKeys reads it.
func (k Key) String() string { return k.ID + ":" + base64.StdEncoding.EncodeToString(k.Secret[:]) }

// newKey makes a key from the system's randomness.
func newKey() Key {
	var k Key
	rand.Read(k.Secret[:])
	var id [4]byte
	rand.Read(id[:])
	k.ID = fmt.Sprintf("k%x", id)
	return k
}

// errUnreadable says that a sealed text cannot be opened: its key is not known, or
// it is not what was sealed in this place.
var errUnreadable = errors.New("a sealed text cannot be opened")

// sealer seals with AES-256-GCM. What it seals opens only in its own place.
type sealer struct {
	first   string
	ciphers map[string]cipher.AEAD
}

func newSealer(keys []Key) (*sealer, error) {
	s := &sealer{ciphers: map[string]cipher.AEAD{}}
	for _, k := range keys {
		if _, twice := s.ciphers[k.ID]; twice {
			return nil, fmt.Errorf("two encryption keys have the id %q", k.ID)
		}
		block, err := aes.NewCipher(k.Secret[:])
		if err != nil {
			return nil, fmt.Errorf("encryption key %q: %w", k.ID, err)
		}
		if s.ciphers[k.ID], err = cipher.NewGCM(block); err != nil {
			return nil, fmt.Errorf("encryption key %q: %w", k.ID, err)
		}
	}
	if len(keys) > 0 {
		s.first = keys[0].ID
	}
	return s, nil
}

// place is where a sealed text stands. It is authenticated, so that a sealed text
// that is moved to another row or column does not open there.
type place struct{ table, column, row string }

func (p place) bytes() []byte { return []byte(p.table + "\x00" + p.column + "\x00" + p.row) }

// seal returns key:base64(nonce|ciphertext). The empty text stays empty: there is
// nothing to hide.
func (s *sealer) seal(at place, text string) string {
	if text == "" {
		return ""
	}
	aead := s.ciphers[s.first]
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(text)+aead.Overhead())
	rand.Read(nonce)
	return s.first + ":" + base64.StdEncoding.EncodeToString(aead.Seal(nonce, nonce, []byte(text), at.bytes()))
}

// open returns what was sealed in this place.
func (s *sealer) open(at place, sealed string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	id, encoded, _ := strings.Cut(sealed, ":")
	aead, known := s.ciphers[id]
	if !known {
		return "", fmt.Errorf("%w: %s.%s of %s: there is no key %q", errUnreadable, at.table, at.column, at.row, id)
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(raw) < aead.NonceSize() {
		return "", fmt.Errorf("%w: %s.%s of %s: it is damaged", errUnreadable, at.table, at.column, at.row)
	}
	text, err := aead.Open(nil, raw[:aead.NonceSize()], raw[aead.NonceSize():], at.bytes())
	if err != nil {
		return "", fmt.Errorf("%w: %s.%s of %s: %w", errUnreadable, at.table, at.column, at.row, err)
	}
	return string(text), nil
}
