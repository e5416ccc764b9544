package audit

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Checkpoint says what the whole trail was when it had Size entries. Signed, it is
// a note of three lines (C2SP tlog-checkpoint): the trail's name, the size, and the
// root in base64.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   []byte
}

// NewKey makes an Ed25519 key for a trail and names it with what randomness gives,
// so that no two trails have one name. Both parts are written as notes write them;
// the signer is a secret.
func NewKey(random io.Reader) (signer, verifier string, err error) {
	var id [8]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return "", "", err
	}
	return note.GenerateKey(random, "countersign/"+hex.EncodeToString(id[:]))
}

// Sign writes the checkpoint as a signed note.
func (c Checkpoint) Sign(by note.Signer) (string, error) {
	signed, err := note.Sign(&note.Note{Text: c.text()}, by)
	return string(signed), err
}

func (c Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root))
}

// OpenCheckpoint reads a signed note and refuses one that the key did not sign or
// that is no checkpoint of the key's trail. Others may have signed it as well.
func OpenCheckpoint(signed string, by note.Verifier) (Checkpoint, error) {
	opened, err := note.Open([]byte(signed), note.VerifierList(by))
	var unknown *note.UnverifiedNoteError
	if errors.As(err, &unknown) {
		return Checkpoint{}, fmt.Errorf("it is not signed with the key of %s", by.Name())
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("it is no signed note: %w", err)
	}
	lines := strings.Split(opened.Text, "\n") // the last one is empty: a note's text ends its last line
	if len(lines) != 4 {
		return Checkpoint{}, errors.New("it is signed, but no checkpoint: it has not three lines")
	}
	c := Checkpoint{Origin: lines[0]}
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Size < 0 {
		return Checkpoint{}, fmt.Errorf("it is signed, but no checkpoint: its size is %q", clip(lines[1]))
	}
	if c.Root, err = base64.StdEncoding.DecodeString(lines[2]); err != nil || len(c.Root) != hashSize {
		return Checkpoint{}, fmt.Errorf("it is signed, but no checkpoint: its root is %q", clip(lines[2]))
	}
	if c.Origin != by.Name() || c.text() != opened.Text {
		return Checkpoint{}, fmt.Errorf("it is signed, but no checkpoint of %s", by.Name())
	}
	return c, nil
}

// openExactly is OpenCheckpoint for a note that must be, byte for byte, what Sign
// writes: one signature, whose base64 has no second spelling.
func openExactly(signed string, by note.Verifier) (Checkpoint, error) {
	c, err := OpenCheckpoint(signed, by)
	if err != nil {
		return Checkpoint{}, err
	}
	before, encoded, _ := strings.Cut(strings.TrimSuffix(signed, "\n"), "\n\n— "+by.Name()+" ")
	if before+"\n" != c.text() {
		return Checkpoint{}, errors.New("it carries more than one signature")
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || base64.StdEncoding.EncodeToString(decoded) != encoded {
		return Checkpoint{}, errors.New("its signature is not written as it was made")
	}
	return c, nil
}
