package pgtest_test

import (
	"database/sql"
	"testing"

	"github.com/countersign/countersign/internal/pgtest"
)

func TestSchema(t *testing.T) {
	names := map[string]bool{}
	for range 2 {
		db, err := sql.Open("postgres", pgtest.Schema(t))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var schema string
		if err := db.QueryRow("SELECT current_schema()").Scan(&schema); err != nil {
			t.Fatal(err)
		}
		if names[schema] {
			t.Fatalf("schema %s was given twice", schema)
		}
		names[schema] = true
		if _, err := db.Exec("CREATE TABLE same_name (id int)"); err != nil {
			t.Fatalf("two tests get in each other's way: %v", err)
		}
	}
}

func TestVersion(t *testing.T) {
	server, err := pgtest.URL()
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("postgres", server)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var version int
	if err := db.QueryRow("SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if version < 150000 {
		t.Fatalf("PostgreSQL %d is older than the store supports", version)
	}
}
