package once

import (
	"context"
	"database/sql"
)

// A Driver is what this package needs of a database driver. T is the transaction that work is given, Q is
// whatever statements can be sent with: a transaction, or a connection on which somebody has begun one.
type Driver[T, Q any] interface {
	// Begin begins a transaction, which goes on if ctx is cancelled afterwards.
	Begin(ctx context.Context, level sql.IsolationLevel) (Transaction[T], error)
	// Querier sends statements with q.
	Querier(q Q) Querier
}

// A Transaction is one that a [Driver] has begun.
type Transaction[T any] interface {
	Querier
	// Tx is the driver's own transaction.
	Tx() T
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// A Querier sends statements. Its errors have a method SQLState if they come from the server.
type Querier interface {
	Exec(ctx context.Context, statement string, args ...any) error
	QueryRow(ctx context.Context, statement string, args ...any) Row
}

// A Row is the only row of a result. Scan returns [sql.ErrNoRows] if there is none.
type Row interface {
	Scan(dest ...any) error
}
