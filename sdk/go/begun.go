package once

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// What hapax.begin decides.
const (
	execute  = "execute"
	replay   = "replay"
	busy     = "busy"
	mismatch = "mismatch"
	inDoubt  = "in_doubt"
	gone     = "gone"
)

// The columns of a row of hapax.begin, so that every driver can read them.
const begunColumns = `decision, coalesce(operation::text, ''), coalesce(fence, 0), coalesce(status, 0), ` +
	`coalesce(headers::text, '{}'), body IS NOT NULL, body, coalesce(retry_after, 0), ` +
	`coalesce(array_to_string(differs, ','), ''), expires_at`

// A begun operation is what hapax.begin says of it.
type begun struct {
	decision   string
	operation  string
	fence      int64
	status     int32
	header     string
	kept       bool
	body       []byte
	retryAfter int32
	differs    string
	expires    *time.Time
}

func begin(ctx context.Context, q Querier, op *Operation) (*begun, error) {
	b := new(begun)
	err := op.begin().row(ctx, q, "", &b.decision, &b.operation, &b.fence, &b.status, &b.header, &b.kept, &b.body,
		&b.retryAfter, &b.differs, &b.expires)
	return b, err
}

// answer is what is said of an operation that does not run.
func (b *begun) answer() (*Answer, error) {
	switch b.decision {
	case replay:
		if !b.kept {
			return nil, &NotRetainedError{Status: int(b.status)}
		}
		header, err := readHeader(b.header)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return &Answer{Status: int(b.status), Header: header, Body: b.body, Replayed: true, Expires: *b.expires}, nil
	case busy:
		return nil, &BusyError{RetryAfter: time.Duration(b.retryAfter) * time.Second}
	case mismatch:
		return nil, &MismatchError{Differs: strings.FieldsFunc(b.differs, func(r rune) bool { return r == ',' })}
	case inDoubt:
		return nil, ErrInDoubt
	case gone:
		return nil, ErrGone
	default:
		return nil, fmt.Errorf("once: hapax.begin decided %q, which this version does not know: update it", b.decision)
	}
}

// What the work writes is behind this savepoint, the claim before it.
const (
	savepoint   = "SAVEPOINT hapax_work"
	toSavepoint = "ROLLBACK TO SAVEPOINT hapax_work"
)

// perform does the work of an operation that runs, and stores what it says. The ending is how the
// transaction is to end.
func (b *begun) perform(ctx context.Context, q Querier, work func() (*Answer, error)) (*Answer, ending, error) {
	if err := exec(ctx, q, savepoint); err != nil {
		return nil, rollback, err
	}
	answer, end, err := decide(work())
	if err != nil {
		return nil, rollback, err
	}
	if end == rollback {
		return answer, rollback, nil
	}
	if end == fail {
		if err := exec(ctx, q, toSavepoint); err != nil {
			return nil, rollback, err
		}
	}
	if err := b.store(ctx, q, answer, end); err != nil {
		return nil, rollback, err
	}
	answer.Expires = *b.expires
	return answer, end, nil
}

// decide says what becomes of what the work returned.
func decide(answer *Answer, err error) (*Answer, ending, error) {
	var refused *RefusedError
	switch {
	// Whatever the work makes of a conflict: it did not happen, and is tried again.
	case isConflict(err):
		return nil, rollback, err
	case errors.As(err, &refused):
		said := refused.Answer.fresh()
		return said, fail, said.check()
	case err != nil:
		return nil, rollback, err
	}
	said := answer.fresh()
	return said, endingOf(said.Status), said.check()
}

func (b *begun) store(ctx context.Context, q Querier, answer *Answer, end ending) error {
	header, err := storedHeader(answer.Header)
	if err != nil {
		return err
	}
	statement := "SELECT hapax.finish($1::uuid, $2::bigint, $3::integer, $4::jsonb, $5::bytea)"
	if end == fail {
		statement = "SELECT hapax.fail($1::uuid, $2::bigint, $3::integer, $4::jsonb, $5::bytea)"
	}
	return exec(ctx, q, statement, b.operation, b.fence, int32(answer.Status), header, some(answer.Body))
}

func exec(ctx context.Context, q Querier, statement string, args ...any) error {
	return translated(q.Exec(ctx, statement, args...))
}
