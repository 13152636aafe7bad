package once

import (
	"context"
	"fmt"
)

// The schema that this package was written for.
const schemaVersion = 10

// CheckSchema says whether the database has the schema that this package needs. Every call does so the
// first time.
func (db *DB[T, Q]) CheckSchema(ctx context.Context) error {
	if db.fits.Load() {
		return nil
	}
	tx, err := db.driver.Begin(ctx, 0)
	if err != nil {
		return translated(err)
	}
	defer undo(ctx, tx)
	return db.checkSchema(ctx, tx)
}

func (db *DB[T, Q]) checkSchema(ctx context.Context, q Querier) error {
	if db.fits.Load() {
		return nil
	}
	var version, worksWith int32
	c := call{text: "SELECT version, works_with FROM hapax.schema_version("}
	err := c.row(ctx, q, "", &version, &worksWith)
	if err != nil {
		return err
	}
	if version < schemaVersion || worksWith > schemaVersion {
		return fmt.Errorf("%w: it has version %d and works with callers of %d, and this package is one of %d",
			ErrSchemaVersion, version, worksWith, schemaVersion)
	}
	db.fits.Store(true)
	return nil
}
