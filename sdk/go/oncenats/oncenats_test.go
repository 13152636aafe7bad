package oncenats_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hapax.dev/once"
	"hapax.dev/once/internal/testbroker"
	"hapax.dev/once/internal/testdb"
	"hapax.dev/once/oncenats"
)

func TestMessagesOfJetStreamAreActedOnOnce(t *testing.T) {
	connection, err := nats.Connect(testdb.Service(t, "nats"))
	check(t, err)
	t.Cleanup(connection.Close)
	js, err := jetstream.New(connection)
	check(t, err)
	name := fmt.Sprintf("hapax-go-%d", time.Now().UnixNano())
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		// Duplicates are to reach the consumer.
		Name: name, Subjects: []string{name}, Storage: jetstream.MemoryStorage, Duplicates: 100 * time.Millisecond,
	})
	check(t, err)
	t.Cleanup(func() { _ = js.DeleteStream(context.Background(), name) })
	source, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: name, AckWait: time.Minute})
	check(t, err)
	testbroker.Check(t, testbroker.Broker{
		Publish: func(id, key, payload string) {
			message := nats.NewMsg(name)
			message.Header.Set("ce-id", id)
			message.Data = []byte(payload)
			_, err := js.PublishMsg(t.Context(), message)
			check(t, err)
		},
		Consume: func(ctx context.Context, consumer *once.Consumer) error {
			return oncenats.Consume(ctx, source, consumer)
		},
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
