package once_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hapax.dev/once"
	"hapax.dev/once/internal/testdb"
	"hapax.dev/once/oncepgx"
)

// consume is a consumer whose handler writes an effect and ends as it is told.
func consume(t *testing.T, database *testdb.Database, end func(ctx context.Context, msg once.Message) error) *once.Consumer {
	return consumeBy(t, database.URL(), end)
}

func consumeBy(t *testing.T, url string, end func(ctx context.Context, msg once.Message) error) *once.Consumer {
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return oncepgx.New(pool).Consumer("mailer", func(ctx context.Context, tx pgx.Tx, msg once.Message) error {
		if _, err := tx.Exec(ctx, insert, msg.ID); err != nil {
			return err
		}
		return end(ctx, msg)
	})
}

func fine(context.Context, once.Message) error { return nil }

func mail(id string) once.Message {
	return once.Message{ID: id, Source: "mails", Payload: []byte("hello")}
}

func TestAMessageGoesByTheNameOfItsSenderOrElseItsBroker(t *testing.T) {
	database := testdb.New(t)
	consumer := consume(t, database, fine)
	named := map[string]once.Message{
		"own":     {ID: "own", Header: map[string]string{"ce_id": "event"}, BrokerID: "mails/0/7"},
		"event":   {Header: map[string]string{"Ce-Id": "event", "message_id": "property"}, BrokerID: "mails/0/7"},
		"nats":    {Header: map[string]string{"Nats-Msg-Id": "nats"}},
		"mails/0": {BrokerID: "mails/0"},
	}
	for id, msg := range named {
		equal(t, consumer.Deliver(t.Context(), msg), once.Outcome{Done: true, Acted: true})
		equal(t, database.Effects(id), 1)
	}
	for _, id := range []string{"", "  ", "caf\u00e9", strings.Repeat("m", 256)} {
		outcome := consumer.Deliver(t.Context(), mail(id))
		is(t, outcome.Err, once.ErrNoMessageID)
		equal(t, outcome.Done || outcome.Acted || outcome.Pause == 0, false)
	}
	consumer.MessageID = func(msg once.Message) string { return string(msg.Payload) }
	equal(t, consumer.Deliver(t.Context(), mail("")), once.Outcome{Done: true, Acted: true})
	equal(t, database.Effects("hello"), 1)
}

func TestAMessageThatFailsComesAgainAndIsADeadLetterInTheEnd(t *testing.T) {
	database := testdb.New(t)
	consumer := consume(t, database, func(context.Context, once.Message) error { return errors.New("no such address\x00") })
	consumer.Attempts, consumer.Tenant, consumer.Retention = 2, "letters", time.Hour
	msg := mail("m-1")
	msg.Key, msg.Header = "ada", map[string]string{"trace": "7\x00"}
	first := consumer.Deliver(t.Context(), msg)
	equal(t, !first.Done && first.Acted && first.Err != nil && first.Pause <= time.Second, true)
	second := consumer.Deliver(t.Context(), msg)
	equal(t, second.Done && second.Acted && second.Err != nil, true)
	equal(t, consumer.Deliver(t.Context(), msg), once.Outcome{Done: true})
	equal(t, database.Effects("m-1"), 0)
	letters := "SELECT count(*) FROM hapax.inbox_dead_readable WHERE reason = 'poison' AND source = 'mails' AND key = 'ada' AND payload = 'hello'"
	equal(t, database.Number(letters), 1)
	equal(t, database.Number("SELECT count(*) FROM hapax.inbox_consumers WHERE tenant = 'letters' AND retention = 3600000000"), 1)
}

func TestAHandlerThatPanicsOrTakesTooLongCostsOneAttempt(t *testing.T) {
	database := testdb.New(t)
	consumer := consume(t, database, func(ctx context.Context, msg once.Message) error {
		if msg.ID == "m-panics" {
			panic("on fire")
		}
		<-ctx.Done()
		return ctx.Err()
	})
	consumer.Timeout = 2 * time.Second
	for _, id := range []string{"m-panics", "m-waits"} {
		outcome := consumer.Deliver(t.Context(), mail(id))
		equal(t, !outcome.Done && outcome.Acted && outcome.Err != nil, true)
		equal(t, database.Effects(id), 0)
		equal(t, database.Number("SELECT attempts FROM hapax.inbox_attempts WHERE message_id = '"+id+"'"), 1)
	}
}

func TestWhatIsNotTheMessagesFaultCostsNoAttempt(t *testing.T) {
	database := testdb.New(t)
	proxy := testdb.NewProxy(t, database)
	cancelled, cancel := context.WithCancel(t.Context())
	conflict := errors.New("none")
	consumer := consumeBy(t, database.By(proxy.Address()), func(ctx context.Context, msg once.Message) error {
		switch msg.ID {
		case "m-conflict":
			return serializationFailure{conflict}
		case "m-cancelled":
			cancel()
			return ctx.Err()
		}
		return nil
	})
	equal(t, consumer.Deliver(t.Context(), mail("m-0")), once.Outcome{Done: true, Acted: true})
	again := func(ctx context.Context, id string) {
		t.Helper()
		outcome := consumer.Deliver(ctx, mail(id))
		equal(t, !outcome.Done && outcome.Err != nil && outcome.Pause >= time.Second, true)
	}
	again(t.Context(), "m-conflict")
	again(cancelled, "m-cancelled")
	holding, err := pgx.Connect(t.Context(), database.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer holding.Close(t.Context())
	if _, err := holding.Exec(t.Context(), "BEGIN; SELECT hapax.first_delivery('mailer', 'm-busy', 'hello')"); err != nil {
		t.Fatal(err)
	}
	again(t.Context(), "m-busy")
	proxy.Cut(testdb.Behind, true)
	again(t.Context(), "m-lost")
	again(t.Context(), "m-away")
	equal(t, database.Number("SELECT count(*) FROM hapax.inbox_attempts"), 0)
	equal(t, database.Effects("m-lost"), 1)
}

// A serializationFailure is one as all drivers tell it.
type serializationFailure struct{ error }

func (serializationFailure) SQLState() string { return "40001" }

func TestOtherContentUnderAKnownNameIsPutAside(t *testing.T) {
	database := testdb.New(t)
	consumer := consume(t, database, fine)
	equal(t, consumer.Deliver(t.Context(), mail("m-1")), once.Outcome{Done: true, Acted: true})
	other := mail("m-1")
	other.Payload = []byte("other")
	outcome := consumer.Deliver(t.Context(), other)
	equal(t, outcome.Done && !outcome.Acted, true)
	is(t, outcome.Err, once.ErrOtherContent)
	equal(t, database.Number("SELECT count(*) FROM hapax.inbox_dead_readable WHERE reason = 'id-conflict'"), 1)
}
