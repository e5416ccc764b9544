package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/countersign/countersign/internal/fault"
)

// keyCheck is what the installation's row keeps sealed; whoever can open it has
// the right key.
const keyCheck = "countersign"

var keyCheckPlace = place{"installation", "key_check", "1"}

// settle finds out whether a migrated database may be used, and installs a new
// one.
func (s *Store) settle(ctx context.Context) error {
	pending, err := s.Pending(ctx)
	if err != nil {
		return err
	}
	if pending > 0 {
		return fault.New(fault.Unavailable, "%d migrations are pending: run countersign migrate.", pending)
	}
	if err := s.checkTriggers(ctx); err != nil {
		return err
	}
	if s.dialect == dialect.SQLite {
		release, err := waitForLock(ctx, s.path+".migrate") // one process makes the key file
		if err != nil {
			return fmt.Errorf("wait for another process to install %s: %w", s.path, err)
		}
		defer release()
	}
	return s.install(ctx)
}

// install checks the keys against the installation's row, which it writes first if
// there is none.
func (s *Store) install(ctx context.Context) error {
	check, err := s.storedKeyCheck(ctx)
	if err != nil {
		return err
	}
	keys, err := s.keys(check != "")
	if err != nil {
		return err
	}
	sealer, err := newSealer(keys)
	if err != nil {
		return err
	}
	if check == "" {
		statement, args := entsql.Dialect(s.dialect).Insert("installation").Columns("id", "key_check", "created_at").
			Values(1, sealer.seal(keyCheckPlace, keyCheck), time.Now().UTC().Truncate(time.Microsecond)).
			OnConflict(entsql.DoNothing()).Query()
		if _, err := s.writer.ExecContext(ctx, statement, args...); err != nil {
			return failed(ctx, err, "install the database")
		}
		if check, err = s.storedKeyCheck(ctx); err != nil { // another replica may have been first
			return err
		}
	}
	if opened, err := sealer.open(keyCheckPlace, check); err != nil || opened != keyCheck {
		return fmt.Errorf("the encryption key is not the one this database was installed with, so that what it keeps encrypted could not be read; "+
			"add the old key to COUNTERSIGN_ENCRYPTION_KEY after the new one: %w", err)
	}
	if err := s.makeAuditKey(ctx, sealer); err != nil {
		return err
	}
	s.sealer.Store(sealer)
	return nil
}

func (s *Store) storedKeyCheck(ctx context.Context) (check string, err error) {
	err = s.writer.QueryRowContext(ctx, "SELECT key_check FROM installation").Scan(&check)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return check, failed(ctx, err, "read the installation")
}
