package once

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// A Consumer acts once on each message. It comes from [DB.Consumer]; set what it should do otherwise
// before the first delivery. It is safe for concurrent use.
type Consumer struct {
	// Inbox remembers its messages, under its name.
	Inbox
	// Attempts is how often a message is tried before it is a dead letter; 10 if nothing is said.
	Attempts int
	// Timeout is how long a handler may take; 30 s if nothing is said.
	Timeout time.Duration
	// MessageID names messages that have no id of their own, or another one than should count. Where it
	// returns nothing, the id is found as ever: that of a CloudEvent, Nats-Msg-Id, AMQP's message_id, or
	// what the broker calls it.
	MessageID func(Message) string
	// Log hears why messages come again or were given up; [slog.Default] if nothing is said.
	Log *slog.Logger

	act  func(ctx context.Context, c *Consumer, msg *Message, acted *bool) error
	fail func(ctx context.Context, c *Consumer, msg *Message, failure Failure) (int, bool, error)
}

// Consumer acts on messages under this name. What handle writes, and that it acted on the message, are one
// commit; if it returns an error, nothing is left, and the message comes again, up to Attempts times.
func (db *DB[T, Q]) Consumer(name string, handle func(ctx context.Context, tx T, msg Message) error) *Consumer {
	return &Consumer{
		Inbox: Inbox{Consumer: name},
		act: func(ctx context.Context, c *Consumer, msg *Message, acted *bool) error {
			return db.act(ctx, &c.Inbox, msg, acted, handle)
		},
		fail: func(ctx context.Context, c *Consumer, msg *Message, failure Failure) (int, bool, error) {
			return db.FailDelivery(ctx, c.Inbox, *msg, failure)
		},
	}
}

// Permanent is the error of a handler that no other attempt would do better: the message is over, without
// a dead letter, and the reason is kept.
func Permanent(err error) error {
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// An Outcome is what the broker is to hear of a delivery.
type Outcome struct {
	// Done: acknowledge the message. Otherwise let it come again, after a pause.
	Done  bool
	Pause time.Duration
	// Acted says that the handler was called.
	Acted bool
	// Err is why it comes again, or was given up.
	Err error
}

const (
	usualHandlerTimeout = 30 * time.Second
	failurePauseMin     = time.Second
	failurePauseMax     = 5 * time.Minute
	busyPause           = time.Second
	outagePause         = 5 * time.Second
)

// Deliver acts on a message, unless that was done before, and says what the broker is to hear.
func (c *Consumer) Deliver(ctx context.Context, msg Message) Outcome {
	if c.MessageID != nil {
		msg.ID = cmp.Or(c.MessageID(msg), msg.ID)
	}
	msg.ID = msg.id()
	outcome := c.deliver(ctx, &msg)
	if outcome.Err != nil {
		log := cmp.Or(c.Log, slog.Default())
		log.WarnContext(ctx, "a message was not acted on", "consumer", c.Consumer, "source", msg.Source,
			"message", msg.ID, "over", outcome.Done, "pause", outcome.Pause, "error", outcome.Err)
	}
	return outcome
}

func (c *Consumer) deliver(ctx context.Context, msg *Message) Outcome {
	if !isName(msg.ID, keyMax) {
		return Outcome{Pause: outagePause, Err: ErrNoMessageID}
	}
	acted := false
	handling, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, usualHandlerTimeout))
	defer cancel()
	err := c.act(handling, c, msg, &acted)
	switch {
	case err == nil:
		return Outcome{Done: true, Acted: acted}
	case isConflict(err), !acted && errors.Is(err, ErrBusy):
		return Outcome{Pause: busyPause, Acted: acted, Err: err}
	// Something else than the message is wrong: no attempt is counted.
	case !acted && !errors.Is(err, ErrOtherContent), isOutage(err), ctx.Err() != nil:
		return Outcome{Pause: outagePause, Acted: acted, Err: err}
	default:
		return c.failed(ctx, msg, acted, err)
	}
}

// isOutage says whether the database went away, as far as an error of a handler tells.
func isOutage(err error) bool {
	return errors.Is(err, ErrOutcomeUnknown) || sqlState(err) != "" && kindOf(err) == ErrUnavailable
}

// failed counts an attempt that failed, and says whether there is another.
func (c *Consumer) failed(ctx context.Context, msg *Message, acted bool, err error) Outcome {
	var permanent *permanentError
	failure := Failure{Reason: err.Error(), AttemptsMax: c.Attempts, ForGood: errors.As(err, &permanent)}
	attempts, over, uncounted := c.fail(ctx, c, msg, failure)
	switch {
	case uncounted != nil:
		return Outcome{Pause: outagePause, Acted: acted, Err: errors.Join(err, uncounted)}
	case over:
		return Outcome{Done: true, Acted: acted, Err: err}
	}
	longest := min(failurePauseMin<<min(attempts-1, 20), failurePauseMax)
	return Outcome{Pause: rand.N(longest), Acted: acted, Err: err}
}

// act does what a message asks for, in a transaction with the record of it.
func (db *DB[T, Q]) act(ctx context.Context, in *Inbox, msg *Message, acted *bool, handle func(context.Context, T, Message) error) error {
	tx, err := db.driver.Begin(ctx, 0)
	if err != nil {
		return translated(err)
	}
	commits := false
	defer func() {
		if !commits {
			undo(ctx, tx)
		}
	}()
	first, err := db.firstDelivery(ctx, tx, in, msg)
	if err != nil || !first {
		return err
	}
	*acted = true
	if err := calmly(func() error { return handle(ctx, tx.Tx(), *msg) }); err != nil {
		return err
	}
	commits = true
	return commit(ctx, tx)
}

// A PanicError is what a handler of messages panicked with. A message must not take down all who try it.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

func calmly(handle func() error) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = &PanicError{panicked, debug.Stack()}
		}
	}()
	return handle()
}
