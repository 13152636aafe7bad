package once

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A DB runs operations in the transactions of one database. It is safe for concurrent use; keep one for
// each pool. T is the driver's transaction, Q what statements can be sent with.
type DB[T, Q any] struct {
	driver Driver[T, Q]
	// Whether the schema was found to fit.
	fits atomic.Bool
}

// New is for adapters: a service calls oncepgx.New or oncesql.New.
func New[T, Q any](driver Driver[T, Q]) *DB[T, Q] {
	return &DB[T, Q]{driver: driver}
}

const (
	triesMax        = 6
	conflictPause   = 20 * time.Millisecond
	doubtPause      = 100 * time.Millisecond
	commitGrace     = 10 * time.Second
	rollbackTimeout = 5 * time.Second
)

// Once runs work in a transaction, with the writes, the events and the answer in one commit, and answers
// every later call of the operation with what the first one said.
//
// If work returns an answer below 400, it is stored. If it returns one of 400 to 499, or [Refuse], that is
// stored too, and what work wrote is taken back; but 401, 403, 408, 413, 425, 429 and everything from 500
// on may go better the next time: then nothing is stored, and the answer is returned as it is. So is any
// other error, and the next call runs. No answer at all is a 200 without a body.
//
// Work must neither commit nor roll back. It is called again if other transactions were in the way, and if
// the connection was lost while it committed and it turns out that nothing was.
func (db *DB[T, Q]) Once(ctx context.Context, op Operation, work func(ctx context.Context, tx T) (*Answer, error)) (*Answer, error) {
	if err := op.check(); err != nil {
		return nil, err
	}
	// Inside of the work of another call it would be committed without that.
	for outer, _ := ctx.Value(underWayKey{}).(*underWay); outer != nil; outer = outer.outer {
		if !outer.over.Load() && (outer.db == any(db) || outer.names(&op)) {
			return nil, ErrNested
		}
	}
	if err := db.CheckSchema(ctx); err != nil {
		return nil, err
	}
	this := &underWay{db: db, op: &op}
	this.outer, _ = ctx.Value(underWayKey{}).(*underWay)
	defer this.over.Store(true)
	run := run[T, Q]{db: db, op: &op, work: func(ctx context.Context, tx T) (*Answer, error) {
		return work(context.WithValue(ctx, underWayKey{}, this), tx)
	}}
	for try := 1; ; try++ {
		answer, err := run.attempt(ctx)
		pause, again := run.next(err)
		if !again || try == triesMax || sleep(ctx, rand.N(pause<<(try-1))) != nil {
			return answer, run.told(err)
		}
	}
}

// An underWay is an operation whose work is being done: what the context that the work is given is inside of.
type underWay struct {
	db    any
	op    *Operation
	outer *underWay
	// The work may leave something behind that goes on with its context.
	over atomic.Bool
}

type underWayKey struct{}

func (u *underWay) names(op *Operation) bool {
	return u.op.Tenant == op.Tenant && u.op.Scope == op.Scope && u.op.Key == op.Key
}

// A run is one call of Once on its way through its tries.
type run[T, Q any] struct {
	db   *DB[T, Q]
	op   *Operation
	work func(context.Context, T) (*Answer, error)
	// Why nobody knows whether an earlier try was committed.
	doubt error
}

func (r *run[T, Q]) attempt(ctx context.Context) (*Answer, error) {
	tx, err := r.db.driver.Begin(ctx, r.op.Isolation)
	if err != nil {
		return nil, translated(err)
	}
	commits := false
	defer func() {
		if !commits {
			undo(ctx, tx)
		}
	}()
	begun, err := begin(ctx, tx, r.op)
	if err != nil {
		return nil, err
	}
	// Who is told that it is busy does not know more than before.
	if begun.decision != busy {
		r.doubt = nil
	}
	if begun.decision != execute {
		return begun.answer()
	}
	answer, ending, err := begun.perform(ctx, tx, func() (*Answer, error) { return r.work(ctx, tx.Tx()) })
	if err != nil || ending == rollback {
		return answer, err
	}
	commits = true
	err = commit(ctx, tx)
	if errors.Is(err, ErrOutcomeUnknown) {
		r.doubt = err
	}
	return answer, err
}

// next says whether there is another try after what came of this one, and after which pause at most.
func (r *run[T, Q]) next(err error) (time.Duration, bool) {
	switch {
	case err == nil:
		return 0, false
	case isConflict(err):
		return conflictPause, true
	default:
		return doubtPause, r.doubt != nil
	}
}

// told is what the caller hears at the end: errors of the work as they are.
func (r *run[T, Q]) told(err error) error {
	switch {
	case r.doubt != nil:
		return r.doubt
	case isConflict(err):
		return translated(err)
	default:
		return err
	}
}

// commit ends a transaction. Whoever stops waiting does not stop it at once: half a commit would be a doubt.
func commit[T any](ctx context.Context, tx Transaction[T]) error {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(commitGrace, cancel) })
	defer stop()
	err := tx.Commit(lasting)
	if kindOf(err) == ErrUnavailable || err != nil && lasting.Err() != nil {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return translated(err)
}

func undo[T any](ctx context.Context, tx Transaction[T]) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	// What cannot be rolled back has no connection any more, and is rolled back by the server.
	_ = tx.Rollback(ctx)
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
