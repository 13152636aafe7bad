// Package onceamqp acts once on each message of RabbitMQ, with amqp091-go.
//
//	deliveries, err := channel.Consume("mails", "", false, false, false, false, nil)
//	err = onceamqp.Consume(ctx, deliveries, db.Consumer("mailer", mail))
//	channel.Close()
package onceamqp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"hapax.dev/once"
)

// ErrClosed says that the channel of the deliveries was closed: open another one.
var ErrClosed = errors.New("onceamqp: the channel was closed")

// Consume acts on messages, one after the other, until ctx is cancelled, and returns nil then, after what
// was begun is finished. Call it several times to act on several messages at once. The deliveries are
// those of a consumer without auto-ack, and its messages have a message_id or are CloudEvents; if they do
// not, set MessageID of the consumer. Close the channel afterwards: what was delivered and not acted on
// comes again.
//
// RabbitMQ has no pauses: a message that is to come again is kept here until then, and counts towards the
// prefetch of the channel.
func Consume(ctx context.Context, deliveries <-chan amqp091.Delivery, consumer *once.Consumer) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case delivery, open := <-deliveries:
			if !open {
				return ErrClosed
			}
			outcome := consumer.Deliver(context.WithoutCancel(ctx), message(&delivery))
			if !outcome.Done {
				// If that fails the channel is gone, and the message comes again by itself.
				time.AfterFunc(outcome.Pause, func() { _ = delivery.Nack(false, true) })
			} else if err := delivery.Ack(false); err != nil {
				return fmt.Errorf("acknowledging to RabbitMQ: %w", err)
			}
		}
	}
}

func message(delivery *amqp091.Delivery) once.Message {
	header := make(map[string]string, len(delivery.Headers)+1)
	for name, value := range delivery.Headers {
		header[name] = fmt.Sprint(value)
	}
	if delivery.MessageId != "" {
		header["message_id"] = delivery.MessageId
	}
	return once.Message{Source: delivery.RoutingKey, Header: header, Payload: delivery.Body}
}
