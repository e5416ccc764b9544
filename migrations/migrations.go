// Package migrations embeds the versioned migrations of both databases. A number
// means the same step in both folders. Migrations only go forward, and one that
// was released is never edited.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed postgres/*.sql sqlite/*.sql
var files embed.FS

// The migrations of each database, named NNNNN_name.sql.
var (
	Postgres = sub("postgres")
	SQLite   = sub("sqlite")
)

func sub(folder string) fs.FS {
	out, err := fs.Sub(files, folder)
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return out
}
