// Package oncekafkago acts once on each message of Kafka, with segmentio/kafka-go.
//
//	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: brokers, GroupID: "mailer", Topic: "mails"})
//	err := oncekafkago.Consume(ctx, reader, db.Consumer("mailer", mail))
package oncekafkago

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"hapax.dev/once"
)

const commitTimeout = 10 * time.Second

// Consume acts on messages until ctx is cancelled, and returns nil then, after what was begun is finished.
// The reader belongs to a group; offsets are committed here, behind what was done.
//
// A message that has to come again holds up its reader: a reader cannot go back to it.
func Consume(ctx context.Context, reader *kafka.Reader, consumer *once.Consumer) error {
	for {
		fetched, err := reader.FetchMessage(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("fetching from %s: %w", reader.Config().Topic, err)
		}
		outcome := consumer.Deliver(context.WithoutCancel(ctx), message(&fetched))
		for ; !outcome.Done; outcome = consumer.Deliver(context.WithoutCancel(ctx), message(&fetched)) {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(outcome.Pause):
			}
		}
		if err := commit(ctx, reader, fetched); err != nil {
			return fmt.Errorf("committing an offset of %s: %w", fetched.Topic, err)
		}
	}
}

func commit(ctx context.Context, reader *kafka.Reader, done kafka.Message) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	return reader.CommitMessages(ctx, done)
}

func message(fetched *kafka.Message) once.Message {
	header := make(map[string]string, len(fetched.Headers))
	for _, line := range fetched.Headers {
		header[line.Key] = string(line.Value)
	}
	return once.Message{
		BrokerID: fmt.Sprintf("%s/%d/%d", fetched.Topic, fetched.Partition, fetched.Offset),
		Source:   fetched.Topic, Key: string(fetched.Key), Header: header, Payload: fetched.Value,
	}
}
