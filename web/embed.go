// Package web holds the pages that the server embeds: GraphiQL, built by
// web/playground and committed, and the sign-in page. It is data; nothing here runs
// on the server.
package web

import (
	"embed"
	"io/fs"
)

//go:embed playground/dist signin
var files embed.FS

// Playground is the built GraphiQL: index.html, playground.js and playground.css.
func Playground() fs.FS { return folder("playground/dist") }

// SignIn is the page behind a sign-in link.
func SignIn() fs.FS { return folder("signin") }

func folder(path string) fs.FS {
	sub, err := fs.Sub(files, path)
	if err != nil {
		panic(err) // the path is a constant that the directive above embeds
	}
	return sub
}
