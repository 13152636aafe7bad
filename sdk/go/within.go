package once

import "context"

// Within is [DB.Once] inside of a transaction that the caller has begun, and commits or rolls back: the
// claim, the writes and the answer with it. It is not tried again, and Operation.Isolation does not count.
//
// After an error, and after an answer that is not stored, nothing of the operation is left in the
// transaction, and the transaction can go on.
func (db *DB[T, Q]) Within(ctx context.Context, tx Q, op Operation, work func(ctx context.Context) (*Answer, error)) (answer *Answer, err error) {
	if err := op.check(); err != nil {
		return nil, err
	}
	q := db.driver.Querier(tx)
	if err := db.checkSchema(ctx, q); err != nil {
		return nil, err
	}
	// Before the claim, which would be a doubt if it were committed without an end. Outside of a
	// transaction the server refuses it, and nothing is claimed.
	if err := exec(ctx, q, "SAVEPOINT hapax"); err != nil {
		return nil, err
	}
	kept := false
	defer func() {
		if kept {
			return
		}
		if undone := undoWithin(ctx, q); undone != nil && err == nil {
			answer, err = nil, undone
		}
	}()
	answer, ending, err := within(ctx, q, &op, work)
	if err != nil || ending == rollback {
		return answer, err
	}
	// A savepoint of this name that the caller may have is behind ours until then.
	if err := exec(ctx, q, "RELEASE SAVEPOINT hapax"); err != nil {
		return nil, err
	}
	kept = true
	return answer, nil
}

// undoWithin takes an operation out of a transaction, whether or not somebody still waits.
func undoWithin(ctx context.Context, q Querier) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	return exec(ctx, q, "ROLLBACK TO SAVEPOINT hapax; RELEASE SAVEPOINT hapax")
}

func within(ctx context.Context, q Querier, op *Operation, work func(context.Context) (*Answer, error)) (*Answer, ending, error) {
	begun, err := begin(ctx, q, op)
	if err != nil {
		return nil, rollback, err
	}
	if begun.decision != execute {
		answer, err := begun.answer()
		return answer, finish, err
	}
	return begun.perform(ctx, q, func() (*Answer, error) { return work(ctx) })
}
