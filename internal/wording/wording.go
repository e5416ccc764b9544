// Package wording says codes in the languages of people. A room stores a code with
// arguments and never a sentence; this one holds the sentences, a file a language, which
// clients may take over as they are. Pure.
package wording

import (
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Language is a language that there are sentences in, as its tag (BCP 47).
type Language string

// The languages.
const (
	English Language = "en"
	German  Language = "de"
)

// Languages lists them.
var Languages = []Language{English, German}

//go:embed *.json
var files embed.FS

var sentences = read()

func read() map[Language]map[string]string {
	out := map[Language]map[string]string{}
	for _, l := range Languages {
		b, err := files.ReadFile(string(l) + ".json")
		if err == nil {
			var of map[string]string
			err = json.Unmarshal(b, &of)
			out[l] = of
		}
		if err != nil {
			panic(fmt.Sprintf("wording: reading the sentences in %s: %v", l, err)) // a program error: the files are part of it
		}
	}
	return out
}

// Say is the sentence of a code with its arguments in their places, {0} the first. An
// argument that is not there leaves its place empty. A code that only a newer server knows
// is said as itself.
func Say(l Language, code string, args ...string) string {
	sentence, known := sentences[l][code]
	if !known {
		return strings.Join(append([]string{code}, args...), " ")
	}
	places := make([]string, 0, 2*maxArgs)
	for i := range maxArgs {
		arg := ""
		if i < len(args) {
			arg = args[i]
		}
		places = append(places, "{"+strconv.Itoa(i)+"}", arg)
	}
	return strings.NewReplacer(places...).Replace(sentence)
}

// maxArgs is how many places a sentence may have.
const maxArgs = 3

// Sentences lists what there is in a language, by code.
func Sentences(l Language) map[string]string { return sentences[l] }
