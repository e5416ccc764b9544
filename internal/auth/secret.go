package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"

	"github.com/countersign/countersign/internal/world"
)

// Prefix starts every secret this product makes, so that scanners for leaked
// credentials know one when they see it.
const Prefix = "cs_"

// secretBytes is the randomness in a secret: 200 bits, which fill 40 base32
// characters. Nobody guesses it, so a plain hash is enough to store it.
const secretBytes = 25

// Hash is what is stored of a secret.
type Hash [sha256.Size]byte

// HashOf hashes a secret: a token, a session's secret or a sign-in code.
func HashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// Equal compares in constant time.
func (h Hash) Equal(other Hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// NewSecret makes a secret and the hash to keep of it. The secret is shown once.
func NewSecret(w world.World) (secret string, hash Hash) {
	secret = Prefix + lower.EncodeToString(w.Secret(secretBytes))
	return secret, HashOf(secret)
}

var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
