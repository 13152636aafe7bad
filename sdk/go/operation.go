package once

import (
	"database/sql"
	"fmt"
	"time"
)

// An Operation is what has one effect, however often it is asked for.
//
// Tenant, Scope and Key name it. Request, Method, Path and Query are what makes two requests the same;
// what is left empty does not tell them apart.
type Operation struct {
	// Tenant is who the caller has proved to be, never what it says of itself.
	Tenant string
	// Scope is what the key counts for: usually the method, a space and the path.
	Scope string
	// Key is the caller's own name for the operation.
	Key string

	Request []byte
	Method  string
	Path    string
	Query   string

	// Retention is how long the answer is kept; zero is the database's default, a day.
	Retention time.Duration
	// Tombstone is how long after that a late retry hears [ErrGone] instead of running again.
	Tombstone time.Duration
	// Wait is how long to wait while another transaction has the operation; zero is the database's
	// default, two seconds, and what is negative is not to wait.
	Wait time.Duration
	// Isolation is the level of the transaction that [DB.Once] begins.
	Isolation sql.IsolationLevel
}

const (
	tenantMax = 255
	scopeMax  = 1024
	keyMax    = 255
)

func (op *Operation) check() error {
	if err := checkName("tenant", op.Tenant, tenantMax); err != nil {
		return err
	}
	if err := checkName("scope", op.Scope, scopeMax); err != nil {
		return err
	}
	return checkName("key", op.Key, keyMax)
}

func checkName(part, name string, longest int) error {
	if !isName(name, longest) {
		return fmt.Errorf("%w: the %s must be 1 to %d visible ASCII characters", ErrInvalid, part, longest)
	}
	return nil
}

// isName says whether this is what the database takes for a name.
func isName(name string, longest int) bool {
	visible := false
	for i := range len(name) {
		if name[i] < ' ' || name[i] > '~' {
			return false
		}
		visible = visible || name[i] != ' '
	}
	return visible && len(name) <= longest
}

// begin asks hapax.begin_bytes.
func (op *Operation) begin() *call {
	c := &call{
		"SELECT " + begunColumns + " FROM hapax.begin_bytes($1::text, $2::text, $3::text, $4::bytea, $5::text, $6::text, $7::text",
		[]any{op.Tenant, op.Scope, op.Key, some(op.Request), op.Method, op.Path, op.Query},
	}
	if op.Retention != 0 {
		c.with("retention", "interval", interval(op.Retention))
	}
	if op.Tombstone != 0 {
		c.with("tombstone", "interval", interval(op.Tombstone))
	}
	if op.Wait != 0 {
		c.with("wait", "interval", interval(max(op.Wait, 0)))
	}
	return c
}
