package onceamqp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"hapax.dev/once"
	"hapax.dev/once/internal/testbroker"
	"hapax.dev/once/internal/testdb"
	"hapax.dev/once/onceamqp"
)

func TestMessagesOfRabbitMQAreActedOnOnce(t *testing.T) {
	connection, queue := open(t)
	channel, err := connection.Channel()
	check(t, err)
	testbroker.Check(t, testbroker.Broker{
		Publish: func(id, key, payload string) {
			message := amqp091.Publishing{MessageId: id, Headers: amqp091.Table{"number": int32(7)}, Body: []byte(payload)}
			check(t, channel.PublishWithContext(t.Context(), "", queue, true, false, message))
		},
		Consume: func(ctx context.Context, consumer *once.Consumer) error {
			channel, err := connection.Channel()
			check(t, err)
			defer channel.Close()
			check(t, channel.Qos(8, 0, false))
			deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
			check(t, err)
			return onceamqp.Consume(ctx, deliveries, consumer)
		},
	})
}

func TestAChannelThatIsClosedIsTold(t *testing.T) {
	connection, queue := open(t)
	channel, err := connection.Channel()
	check(t, err)
	deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
	check(t, err)
	check(t, channel.Close())
	if err := onceamqp.Consume(t.Context(), deliveries, nil); !errors.Is(err, onceamqp.ErrClosed) {
		t.Errorf("it ended with %v", err)
	}
}

func open(t *testing.T) (*amqp091.Connection, string) {
	connection, err := amqp091.Dial(testdb.Service(t, "rabbitmq"))
	check(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	channel, err := connection.Channel()
	check(t, err)
	queue, err := channel.QueueDeclare(fmt.Sprintf("hapax-go-%d", time.Now().UnixNano()), false, false, false, false, nil)
	check(t, err)
	t.Cleanup(func() { _, _ = channel.QueueDelete(queue.Name, false, false, false) })
	return connection, queue.Name
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
