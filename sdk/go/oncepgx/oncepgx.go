// Package oncepgx runs operations in transactions of pgx.
//
//	db := oncepgx.New(pool)
//	answer, err := db.Once(ctx, op, func(ctx context.Context, tx pgx.Tx) (*once.Answer, error) {
//		_, err := tx.Exec(ctx, "INSERT INTO payments …")
//		…
//	})
package oncepgx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hapax.dev/once"
)

// A DB runs operations in transactions of pgx.
type DB = once.DB[pgx.Tx, Querier]

// A Querier is a [pgx.Tx], or a connection on which a transaction was begun otherwise.
type Querier interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, statement string, args ...any) pgx.Row
}

// A Pool begins transactions: a pgxpool.Pool, or what stands for one.
type Pool interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// New runs operations on the connections of a pool.
func New(pool Pool) *DB {
	return once.New(driver{pool})
}

// Tx is the transaction of the request that a handler behind [once.DB.Middleware] serves. It panics if
// there is none.
func Tx(ctx context.Context) pgx.Tx {
	return once.Tx[pgx.Tx](ctx)
}

type driver struct{ pool Pool }

var levels = map[sql.IsolationLevel]pgx.TxIsoLevel{
	sql.LevelDefault:         "",
	sql.LevelReadUncommitted: pgx.ReadUncommitted,
	sql.LevelReadCommitted:   pgx.ReadCommitted,
	sql.LevelRepeatableRead:  pgx.RepeatableRead,
	sql.LevelSerializable:    pgx.Serializable,
}

func (d driver) Begin(ctx context.Context, level sql.IsolationLevel) (once.Transaction[pgx.Tx], error) {
	spelled, known := levels[level]
	if !known {
		return nil, fmt.Errorf("%w: PostgreSQL has no isolation level %v", once.ErrInvalid, level)
	}
	tx, err := d.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: spelled})
	if err != nil {
		return nil, err
	}
	return transaction{querier{tx}, tx}, nil
}

func (driver) Querier(q Querier) once.Querier { return querier{q} }

type querier struct{ q Querier }

func (q querier) Exec(ctx context.Context, statement string, args ...any) error {
	_, err := q.q.Exec(ctx, statement, args...)
	return over(err)
}

func (q querier) QueryRow(ctx context.Context, statement string, args ...any) once.Row {
	return row{q.q.QueryRow(ctx, statement, args...)}
}

type row struct{ row pgx.Row }

func (r row) Scan(dest ...any) error { return over(r.row.Scan(dest...)) }

type transaction struct {
	querier
	tx pgx.Tx
}

func (t transaction) Tx() pgx.Tx                         { return t.tx }
func (t transaction) Commit(ctx context.Context) error   { return over(t.tx.Commit(ctx)) }
func (t transaction) Rollback(ctx context.Context) error { return t.tx.Rollback(ctx) }

// over says of a transaction that has ended that it is none.
func over(err error) error {
	if errors.Is(err, pgx.ErrTxClosed) {
		return fmt.Errorf("%w: %w", once.ErrNotInTransaction, err)
	}
	return err
}
