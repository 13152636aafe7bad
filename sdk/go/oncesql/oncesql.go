// Package oncesql runs operations in transactions of database/sql, with any driver for PostgreSQL whose
// errors tell their SQLSTATE: pgx/stdlib and lib/pq do.
//
//	db := oncesql.New(pool)
//	answer, err := db.Once(ctx, op, func(ctx context.Context, tx *sql.Tx) (*once.Answer, error) {
//		_, err := tx.ExecContext(ctx, "INSERT INTO payments …")
//		…
//	})
package oncesql

import (
	"context"
	"database/sql"

	"hapax.dev/once"
)

// A DB runs operations in transactions of database/sql.
type DB = once.DB[*sql.Tx, Querier]

// A Querier is a [sql.Tx], or a [sql.Conn] on which a transaction was begun otherwise.
type Querier interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, statement string, args ...any) *sql.Row
}

// New runs operations on the connections of a pool.
func New(pool *sql.DB) *DB {
	return once.New(driver{pool})
}

// Tx is the transaction of the request that a handler behind [once.DB.Middleware] serves. It panics if
// there is none.
func Tx(ctx context.Context) *sql.Tx {
	return once.Tx[*sql.Tx](ctx)
}

type driver struct{ pool *sql.DB }

func (d driver) Begin(ctx context.Context, level sql.IsolationLevel) (once.Transaction[*sql.Tx], error) {
	// The context of a sql.Tx rolls it back, or breaks its commit, whenever it is cancelled. Ours may
	// keep it from beginning, and no more.
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	tx, err := d.pool.BeginTx(lasting, &sql.TxOptions{Isolation: level})
	if !stop() {
		cancel()
		return nil, ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return transaction{querier{tx}, tx, cancel}, nil
}

func (driver) Querier(q Querier) once.Querier { return querier{q} }

type querier struct{ q Querier }

func (q querier) Exec(ctx context.Context, statement string, args ...any) error {
	_, err := q.q.ExecContext(ctx, statement, args...)
	return err
}

func (q querier) QueryRow(ctx context.Context, statement string, args ...any) once.Row {
	return q.q.QueryRowContext(ctx, statement, args...)
}

type transaction struct {
	querier
	tx     *sql.Tx
	cancel context.CancelFunc
}

func (t transaction) Tx() *sql.Tx { return t.tx }

func (t transaction) Commit(ctx context.Context) error {
	return t.end(ctx, t.tx.Commit)
}

func (t transaction) Rollback(ctx context.Context) error {
	return t.end(ctx, t.tx.Rollback)
}

func (t transaction) end(ctx context.Context, end func() error) error {
	defer t.cancel()
	stop := context.AfterFunc(ctx, t.cancel)
	defer stop()
	return end()
}
