package audit

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// A trail file is JSON, one object a line: a header; the entries, oldest first; a
// signed checkpoint after every 256th index; an end. Every line has one spelling,
// so that a file in which any byte differs is another file.
const (
	trailFormat = "countersign/trail/1"
	blockSize   = tileWidth // entries between two checkpoints
)

// header is the first line: which trail, and which of its entries follow. Before
// are the hashes of the complete subtrees that cover [0, From), from the left.
type header struct {
	Format string   `json:"format"`
	Origin string   `json:"origin"`
	Size   int64    `json:"size"`
	From   int64    `json:"from"`
	To     int64    `json:"to"`
	Before []string `json:"before"`
}

// mark is a signed checkpoint between two blocks of entries.
type mark struct {
	Checkpoint string `json:"checkpoint"`
}

// end is the last line. After are the hashes of the complete subtrees that cover
// [To, Size), from the left; Checkpoint covers Size.
type end struct {
	After      []string `json:"after"`
	Checkpoint string   `json:"checkpoint"`
	Older      *older   `json:"older,omitempty"`
}

// older is a checkpoint that somebody kept, with the proof that what it covers is
// the beginning of this trail.
type older struct {
	Checkpoint string   `json:"checkpoint"`
	Proof      []string `json:"proof"`
}

// How lines begin, which tells them apart.
var (
	entryBegins = []byte(`{"index":`)
	leafBegins  = []byte(`,"leafHash":"`)
	textBegins  = []byte(`","entry":`)
	markBegins  = []byte(`{"checkpoint":`)
	endBegins   = []byte(`{"after":`)
)

// appendEntry writes an entry's line without its line break.
func appendEntry(line []byte, index int64, leaf, canonical []byte) []byte {
	line = append(line, entryBegins...)
	line = strconv.AppendInt(line, index, 10)
	line = append(line, leafBegins...)
	line = hex.AppendEncode(line, leaf)
	line = append(line, textBegins...)
	line = append(line, canonical...)
	return append(line, '}')
}

// readEntry reads an entry's line. The canonical bytes are a part of the line and
// are not checked.
func readEntry(line []byte) (index int64, leaf, canonical []byte, err error) {
	digits, rest, found := bytes.Cut(bytes.TrimPrefix(line, entryBegins), leafBegins)
	encoded, text, foundToo := bytes.Cut(rest, textBegins)
	canonical, closed := bytes.CutSuffix(text, []byte("}"))
	if !found || !foundToo || !closed {
		return 0, nil, nil, errors.New("it is no entry's line")
	}
	if index, err = strconv.ParseInt(string(digits), 10, 64); err != nil || index < 0 {
		return 0, nil, nil, fmt.Errorf("its index is %q", clip(string(digits)))
	}
	leaf = make([]byte, hex.DecodedLen(len(encoded)))
	if _, err = hex.Decode(leaf, encoded); err != nil || len(leaf) != hashSize {
		return 0, nil, nil, fmt.Errorf("its leaf hash is %q", clip(string(encoded)))
	}
	if !bytes.Equal(appendEntry(nil, index, leaf, canonical), line) {
		return 0, nil, nil, errors.New("it is not spelled as an entry's line is")
	}
	return index, leaf, canonical, nil
}

// readLine reads a line that is no entry's.
func readLine[T any](line []byte) (T, error) {
	var read T
	if err := json.Unmarshal(line, &read); err != nil {
		return read, fmt.Errorf("it cannot be read: %w", err)
	}
	if !bytes.Equal(encode(read), line) {
		return read, errors.New("it is not spelled as an export spells it")
	}
	return read, nil
}

// hexes writes hashes.
func hexes(hashes [][]byte) []string {
	out := make([]string, len(hashes))
	for i, hash := range hashes {
		out[i] = hex.EncodeToString(hash)
	}
	return out
}

// unhexes reads hashes. None are an empty list.
func unhexes(texts []string) ([][]byte, error) {
	if texts == nil {
		return nil, errors.New("a list of hashes is missing")
	}
	hashes := make([][]byte, len(texts))
	for i, text := range texts {
		hash, err := hex.DecodeString(text)
		if err != nil || len(hash) != hashSize || hex.EncodeToString(hash) != text {
			return nil, fmt.Errorf("%q is no hash", clip(text))
		}
		hashes[i] = hash
	}
	return hashes, nil
}
