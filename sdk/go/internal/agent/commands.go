package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"hapax.dev/once"
)

type command struct {
	Do  string
	How string

	Tenant, Scope, Key, Request string
	Method, Path, Query         string
	WaitMillis                  *int64 `json:"wait_ms"`
	RetentionSeconds            int64  `json:"retention_s"`
	TombstoneSeconds            int64  `json:"tombstone_s"`
	Isolation                   string
	Times                       int

	Consumer    string
	MessageID   string `json:"message_id"`
	Content     string
	AttemptsMax int `json:"attempts_max"`

	Work work
	// Of a nested one: whether it goes by another DB.
	By string
}

// What the work does, in this order, as far as it has it.
type work struct {
	PauseMillis int64 `json:"pause_ms"`
	Write       *string
	Emit        *struct{ Topic, Key, Payload string }
	Nested      *command
	Die         bool
	Raise       *string
	Refuse      *answer
	Answer      *answer
}

type answer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	// What a message is refused with.
	Reason string `json:"reason"`
}

const insert = "INSERT INTO effects (name) VALUES ($1)"

// raised is the error of the work itself.
type raised string

func (r raised) Error() string { return string(r) }

var levels = map[string]sql.IsolationLevel{
	"":                sql.LevelDefault,
	"read committed":  sql.LevelReadCommitted,
	"repeatable read": sql.LevelRepeatableRead,
	"serializable":    sql.LevelSerializable,
}

func (a *agent[T, Q]) obey(ctx context.Context, line []byte) any {
	var c command
	if err := json.Unmarshal(line, &c); err != nil {
		return failed("unknown_command", err)
	}
	switch c.Do {
	case "once":
		return told(a.once(ctx, &c))
	case "within":
		return told(a.within(ctx, &c))
	case "storm":
		return a.storm(ctx, &c)
	case "deliver":
		return a.deliver(ctx, &c)
	case "schema_version":
		if err := a.open().CheckSchema(ctx); err != nil {
			return told(nil, err)
		}
		return map[string]bool{"ok": true}
	case "serve":
		return a.serve()
	}
	return failed("unknown_command", fmt.Errorf("there is no command %q", c.Do))
}

func (a *agent[T, Q]) once(ctx context.Context, c *command) (*once.Answer, error) {
	db := a.db
	if c.By == "another" {
		db = a.open()
	}
	return db.Once(ctx, c.operation(), func(ctx context.Context, tx T) (*once.Answer, error) {
		return a.work(ctx, a.as(tx), &c.Work)
	})
}

func (a *agent[T, Q]) storm(ctx context.Context, c *command) any {
	answers := make([]any, c.Times)
	var group sync.WaitGroup
	for i := range answers {
		group.Add(1)
		go func() {
			defer group.Done()
			answers[i] = told(a.once(ctx, c))
		}()
	}
	group.Wait()
	return map[string]any{"answers": answers}
}

func (a *agent[T, Q]) within(ctx context.Context, c *command) (*once.Answer, error) {
	connection, release, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	work := func(ctx context.Context) (*once.Answer, error) { return a.work(ctx, connection, &c.Work) }
	within := func(ctx context.Context) (*once.Answer, error) {
		return a.db.Within(ctx, connection, c.operation(), work)
	}
	if c.How == "autocommit" {
		return within(ctx)
	}
	if err := a.exec(ctx, connection, "BEGIN"); err != nil {
		return nil, err
	}
	if c.How == "aborted" {
		_ = a.exec(ctx, connection, "SELECT 1 / 0")
	}
	begin := within
	if c.How == "twice" {
		// Before the first has ended: after that, the second would be a replay.
		begin = func(ctx context.Context) (*once.Answer, error) {
			return a.db.Within(ctx, connection, c.operation(), within)
		}
	}
	said, err := begin(ctx)
	end := "COMMIT"
	if c.How == "rollback" || err != nil {
		end = "ROLLBACK"
	}
	if ended := a.exec(ctx, connection, end); err == nil {
		err = ended
	}
	return said, err
}

func (a *agent[T, Q]) deliver(ctx context.Context, c *command) any {
	consumer := a.db.Consumer(c.Consumer, func(ctx context.Context, tx T, _ once.Message) error {
		_, err := a.work(ctx, a.as(tx), &c.Work)
		if refused := (*once.RefusedError)(nil); errors.As(err, &refused) {
			return once.Permanent(errors.New(c.Work.Refuse.Reason))
		}
		return err
	})
	consumer.Attempts = c.AttemptsMax
	outcome := consumer.Deliver(ctx, once.Message{ID: c.MessageID, Source: "agent", Payload: []byte(c.Content)})
	word := "again"
	if outcome.Done {
		word = "done"
	}
	return map[string]any{"outcome": word, "acted": outcome.Acted}
}

func (a *agent[T, Q]) work(ctx context.Context, q Q, w *work) (*once.Answer, error) {
	time.Sleep(time.Duration(w.PauseMillis) * time.Millisecond)
	if w.Write != nil {
		if err := a.exec(ctx, q, insert, *w.Write); err != nil {
			return nil, err
		}
	}
	if w.Nested != nil {
		if _, err := a.once(ctx, w.Nested); err != nil {
			return nil, err
		}
	}
	if e := w.Emit; e != nil {
		if _, err := a.db.Emit(ctx, q, once.Event{Topic: e.Topic, Key: e.Key, Payload: []byte(e.Payload)}); err != nil {
			return nil, err
		}
	}
	if w.Die {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGKILL); err != nil {
			return nil, err
		}
		// The signal is on its way.
		select {}
	}
	if w.Raise != nil {
		return nil, raised(*w.Raise)
	}
	if w.Refuse != nil {
		return nil, once.Refuse(w.Refuse.given())
	}
	return w.Answer.given(), nil
}

func (c *command) operation() once.Operation {
	op := once.Operation{
		Tenant: c.Tenant, Scope: c.Scope, Key: c.Key,
		Request: []byte(c.Request), Method: c.Method, Path: c.Path, Query: c.Query,
		Retention: time.Duration(c.RetentionSeconds) * time.Second,
		Tombstone: time.Duration(c.TombstoneSeconds) * time.Second,
		Isolation: levels[strings.ToLower(c.Isolation)],
	}
	if c.WaitMillis != nil {
		op.Wait = time.Duration(*c.WaitMillis) * time.Millisecond
		if op.Wait == 0 {
			op.Wait = -1
		}
	}
	return op
}

func (given *answer) given() *once.Answer {
	if given == nil {
		return nil
	}
	header := make(http.Header, len(given.Headers))
	for name, value := range given.Headers {
		header.Set(name, value)
	}
	return &once.Answer{Status: given.Status, Header: header, Body: []byte(given.Body)}
}
