// Package oncenats acts once on each message of NATS JetStream, with nats.go.
//
//	stream, err := js.CreateOrUpdateConsumer(ctx, "MAILS", jetstream.ConsumerConfig{Durable: "mailer"})
//	err = oncenats.Consume(ctx, stream, db.Consumer("mailer", mail))
package oncenats

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"hapax.dev/once"
)

// Consume acts on messages, one after the other, until ctx is cancelled, and returns nil then, after what
// was begun is finished. Call it several times to act on several messages at once. AckWait of the stream's
// consumer should be longer than Timeout of ours.
func Consume(ctx context.Context, source jetstream.Consumer, consumer *once.Consumer) error {
	messages, err := source.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		received, err := messages.Next(jetstream.NextContext(ctx))
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("receiving from JetStream: %w", err)
		}
		outcome := consumer.Deliver(context.WithoutCancel(ctx), message(received))
		if outcome.Done {
			err = received.Ack()
		} else {
			err = received.NakWithDelay(outcome.Pause)
		}
		if err != nil {
			return fmt.Errorf("telling JetStream: %w", err)
		}
	}
}

func message(received jetstream.Msg) once.Message {
	header := make(map[string]string, len(received.Headers()))
	for name, values := range received.Headers() {
		header[name] = values[0]
	}
	converted := once.Message{Source: received.Subject(), Header: header, Payload: received.Data()}
	if metadata, err := received.Metadata(); err == nil {
		converted.BrokerID = fmt.Sprintf("%s:%d", metadata.Stream, metadata.Sequence.Stream)
	}
	return converted
}
