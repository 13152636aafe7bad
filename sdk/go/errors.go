package once

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// What can come of a call besides an answer. Compare with [errors.Is]; the cause, where there is one, is
// found with [errors.As].
var (
	ErrBusy               = errors.New("once: another transaction has the operation; ask again")
	ErrMismatch           = errors.New("once: the key was used for another request; use a new key for a new request")
	ErrInDoubt            = errors.New("once: nobody knows whether it happened; find out, and say so with `hapax keys resolve`")
	ErrGone               = errors.New("once: it was done, and its answer is no longer kept")
	ErrNotRetained        = errors.New("once: it was done, and its answer was too large to keep")
	ErrConflict           = errors.New("once: other transactions were in the way; nothing happened, ask again")
	ErrOutcomeUnknown     = errors.New("once: the connection was lost while it committed, and nobody can be asked; ask again with the same key")
	ErrUnavailable        = errors.New("once: the database cannot be asked; nothing happened, ask again")
	ErrSchemaMissing      = errors.New("once: there is no schema hapax in this database; run `hapax migrate --store URL`")
	ErrSchemaVersion      = errors.New("once: the schema hapax does not fit this package; run `hapax migrate`, or update the package")
	ErrNotInTransaction   = errors.New("once: this is not in a transaction, or it is over; begin one first")
	ErrTransactionAborted = errors.New("once: an earlier statement of the transaction failed; roll back")
	ErrBegunAlready       = errors.New("once: the operation was begun already in this transaction; begin it once")
	ErrNested             = errors.New("once: this is inside of the work of another Once, which may still be rolled back; use Within with the transaction that the work was given; nothing was done")
	ErrStatementPooling   = errors.New("once: the pooler gives every statement another session; use its transaction mode")
	ErrInvalid            = errors.New("once: an argument cannot be used")
	ErrNotPermitted       = errors.New("once: the role may not call the functions, or not use this tenant; see hapax.grant_functions and hapax.bind_tenants")
	ErrDamaged            = errors.New("once: the stored record is damaged; look at it with `hapax keys show`")
	ErrNewer              = errors.New("once: the stored record was written by a newer version; run `hapax migrate` of that version")
	// ErrOtherContent is for messages: the id of this one was used for other content.
	ErrOtherContent = errors.New("once: the message id was used for other content; put the message aside")
	// ErrNoMessageID is for messages: neither sender, broker nor consumer name this one.
	ErrNoMessageID = errors.New("once: the message has no id of 1 to 255 visible ASCII characters; let Consumer.MessageID name it")
)

// A BusyError is [ErrBusy], and says when to ask again.
type BusyError struct {
	RetryAfter time.Duration
}

func (e *BusyError) Error() string { return fmt.Sprintf("%v: in %v", ErrBusy, e.RetryAfter) }
func (e *BusyError) Unwrap() error { return ErrBusy }

// A MismatchError is [ErrMismatch], and says what differs: method, path, query or body.
type MismatchError struct {
	Differs []string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%v: it differs in %s", ErrMismatch, strings.Join(e.Differs, ", "))
}
func (e *MismatchError) Unwrap() error { return ErrMismatch }

// A NotRetainedError is [ErrNotRetained], and says what the answer was.
type NotRetainedError struct {
	Status int
}

func (e *NotRetainedError) Error() string {
	return fmt.Sprintf("%v: its status was %d", ErrNotRetained, e.Status)
}
func (e *NotRetainedError) Unwrap() error { return ErrNotRetained }

var kinds = map[string]error{
	"40001": ErrConflict, "40P01": ErrConflict,
	"53300": ErrUnavailable, "57P01": ErrUnavailable, "57P02": ErrUnavailable, "57P03": ErrUnavailable,
	"25P01": ErrNotInTransaction, "25P02": ErrTransactionAborted,
	"42501": ErrNotPermitted,
	// Text that no database of this encoding holds.
	"22021": ErrInvalid, "22P05": ErrInvalid,
	"HX001": ErrInvalid, "HX003": ErrBegunAlready, "HX004": ErrInvalid, "HX005": ErrOtherContent,
	"HX006": ErrDamaged, "HX007": ErrNewer, "HX008": ErrBusy,
}

// translated says of which kind an error is that one of our own statements failed with.
func translated(err error) error {
	if kind := kindOf(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

func kindOf(err error) error {
	if err == nil {
		return nil
	}
	state := sqlState(err)
	switch {
	case errors.Is(err, sql.ErrNoRows), errors.Is(err, sql.ErrTxDone), errors.Is(err, ErrNotInTransaction):
		return ErrNotInTransaction
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil
	case state == "":
		return ErrUnavailable
	case state == "08P01" && strings.Contains(err.Error(), "statement pooling"):
		return ErrStatementPooling
	case strings.HasPrefix(state, "08"):
		return ErrUnavailable
	case state == "3F000", state == "42883", state == "42P01":
		if strings.Contains(err.Error(), "hapax") {
			return ErrSchemaMissing
		}
	}
	return kinds[state]
}

func isConflict(err error) bool {
	return kinds[sqlState(err)] == ErrConflict
}

// sqlState is what the server calls the error, as all drivers tell it.
func sqlState(err error) string {
	var told interface{ SQLState() string }
	if errors.As(err, &told) {
		return told.SQLState()
	}
	return ""
}
