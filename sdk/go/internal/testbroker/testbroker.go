// Package testbroker is what every broker's adapter is held against, on real servers.
package testbroker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hapax.dev/once"
	"hapax.dev/once/internal/testdb"
	"hapax.dev/once/oncepgx"
)

const patience = 40 * time.Second

// A Broker is one that an adapter consumes from.
type Broker struct {
	// Publish sends a message, which has an id and a key.
	Publish func(id, key, payload string)
	// Consume consumes until it is cancelled.
	Consume func(ctx context.Context, consumer *once.Consumer) error
}

// Check sends messages, more than once and of all kinds, to consumers that stop and start again.
func Check(t *testing.T, broker Broker) {
	database := testdb.New(t)
	pool, err := pgxpool.New(t.Context(), database.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	handler := &handler{calls: make(map[string]int)}
	consumer := oncepgx.New(pool).Consumer("mailer", handler.mail)
	consumer.Attempts = 3

	run(t, broker, consumer, 1, func() {
		for number := range 10 {
			for range 2 {
				broker.Publish(name(number), fmt.Sprintf("key-%d", number%3), "hello")
			}
		}
		broker.Publish("flaky", "key-0", "hello")
		broker.Publish("failed", "key-1", "hello")
		broker.Publish("poison", "key-2", "hello")
		until(t, database, "SELECT (SELECT count(*) FROM effects) + (SELECT count(*) FROM hapax.inbox_readable WHERE state = 'failed')", 13)
	})
	run(t, broker, consumer, 2, func() {
		for number := range 20 {
			broker.Publish(name(number), fmt.Sprintf("key-%d", number%3), "hello")
		}
		broker.Publish("poison", "key-2", "hello")
		broker.Publish(name(0), "key-0", "something else")
		until(t, database, "SELECT (SELECT count(*) FROM effects) + (SELECT count(*) FROM hapax.inbox_dead_readable WHERE reason = 'id-conflict')", 22)
	})

	for number := range 20 {
		expect(t, name(number), database.Effects(name(number)), 1)
	}
	expect(t, "flaky", database.Effects("flaky"), 1)
	expect(t, "calls for flaky", handler.called("flaky"), 3)
	expect(t, "failed", database.Effects("failed"), 0)
	expect(t, "calls for failed", handler.called("failed"), 1)
	expect(t, "poison", database.Effects("poison"), 0)
	expect(t, "calls for poison", handler.called("poison"), 3)
	expect(t, "letters", database.Number("SELECT count(*) FROM hapax.inbox_dead_readable WHERE reason = 'poison' AND payload = 'hello'"), 1)
}

func name(number int) string { return fmt.Sprintf("mail-%d", number) }

// run lets so many consumers at work do something, and stops them.
func run(t *testing.T, broker Broker, consumer *once.Consumer, count int, do func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for range count {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := broker.Consume(ctx, consumer); err != nil {
				t.Errorf("it ended with %v", err)
			}
		}()
	}
	defer group.Wait()
	defer cancel()
	do()
}

func until(t *testing.T, database *testdb.Database, query string, expected int) {
	for end := time.Now().Add(patience); database.Number(query) != expected; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s is %d, and not %d", query, database.Number(query), expected)
		}
	}
}

func expect(t *testing.T, what string, got, expected int) {
	if got != expected {
		t.Errorf("%s: %d, expected %d", what, got, expected)
	}
}

// A handler writes an effect for each message, and fails as their names say.
type handler struct {
	mutex sync.Mutex
	calls map[string]int
}

func (h *handler) mail(ctx context.Context, tx pgx.Tx, msg once.Message) error {
	if _, err := tx.Exec(ctx, "INSERT INTO effects (name) VALUES ($1)", msg.ID); err != nil {
		return err
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.calls[msg.ID]++
	switch {
	case strings.HasPrefix(msg.ID, "failed"):
		return once.Permanent(errors.New("there is no address"))
	case msg.ID == "poison", msg.ID == "flaky" && h.calls[msg.ID] < 3:
		return errors.New("not now")
	}
	return nil
}

func (h *handler) called(id string) int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.calls[id]
}
