package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/lib/pq"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/countersign/countersign/internal/fault"
)

// trouble is what a database's error means to the store.
type trouble int

const (
	otherTrouble trouble = iota // ours: a statement that cannot be right
	retry                       // another transaction was in the way; the same may succeed now
	busy                        // another program kept the file for all of busy_timeout: waiting again keeps everybody waiting
	lost                        // a constraint between rows does not hold: somebody else was first
	gone                        // the database cannot be reached or does not work
	unfit                       // a text that the database cannot hold
)

// sqlStates maps PostgreSQL's error codes, by code or by class.
var sqlStates = map[string]trouble{
	"40001": retry, // serialization_failure
	"40P01": retry, // deadlock_detected
	"55P03": retry, // lock_not_available
	"23503": lost,  // foreign_key_violation
	"23001": lost,  // restrict_violation
	"23505": lost,  // unique_violation
	"08":    gone,  // connection exceptions
	"53":    gone,  // insufficient resources
	"57":    gone,  // operator intervention: shutting down, starting up, terminated
	"58":    gone,  // system errors
	"25006": gone,  // read_only_sql_transaction: a standby
	"22021": unfit, // character_not_in_repertoire: U+0000
	"22P05": unfit, // untranslatable_character: \u0000 in JSON
}

// sqliteCodes maps SQLite's result codes: extended ones, then primary ones.
var sqliteCodes = map[int]trouble{
	sqlite3.SQLITE_BUSY:                  busy,
	sqlite3.SQLITE_BUSY_SNAPSHOT:         retry,
	sqlite3.SQLITE_LOCKED:                retry,
	sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: lost,
	sqlite3.SQLITE_CONSTRAINT_UNIQUE:     lost,
	sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: lost,
	sqlite3.SQLITE_IOERR:                 gone,
	sqlite3.SQLITE_CANTOPEN:              gone,
	sqlite3.SQLITE_FULL:                  gone,
	sqlite3.SQLITE_READONLY:              gone,
	sqlite3.SQLITE_CORRUPT:               gone,
	sqlite3.SQLITE_NOTADB:                gone,
	sqlite3.SQLITE_PROTOCOL:              gone,
}

// diagnose says what an error of either database means.
func diagnose(err error) trouble {
	var state *pq.Error
	if errors.As(err, &state) {
		if t, known := sqlStates[state.SQLState()]; known {
			return t
		}
		return sqlStates[state.SQLState()[:2]]
	}
	var code *sqlite.Error
	if errors.As(err, &code) {
		if t, known := sqliteCodes[code.Code()]; known {
			return t
		}
		// A foreign key that restricts is a trigger inside SQLite and is told from
		// the append-only triggers by its text alone.
		if code.Code() == sqlite3.SQLITE_CONSTRAINT_TRIGGER && strings.Contains(code.Error(), "FOREIGN KEY constraint failed") {
			return lost
		}
		return sqliteCodes[code.Code()&0xff]
	}
	var network *net.OpError
	for _, target := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, target) {
			return gone
		}
	}
	if errors.As(err, &network) || strings.Contains(err.Error(), "sql: database is closed") {
		return gone
	}
	return otherTrouble
}

// failed is the error a caller gets for a statement that failed: the context's own
// when it ended, UNAVAILABLE when the database is gone or stays busy, BAD_USER_INPUT for
// a text that it cannot hold, else INTERNAL.
func failed(ctx context.Context, err error, doing string) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	var already *fault.Error
	if errors.As(err, &already) {
		return err
	}
	switch diagnose(err) {
	case gone:
		return fault.Wrap(fault.Unavailable, err, "The database cannot be reached; try again.")
	case retry, busy:
		return fault.Wrap(fault.Unavailable, err, "The database is busy; try again.")
	case unfit:
		return fault.Wrap(fault.BadInput, err, "A text holds the character U+0000, which is not accepted.")
	default:
		return fault.Wrap(fault.Internal, err, "could not %s", doing)
	}
}
