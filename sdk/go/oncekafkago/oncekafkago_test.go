package oncekafkago_test

import (
	"context"
	"testing"

	"github.com/segmentio/kafka-go"

	"hapax.dev/once"
	"hapax.dev/once/internal/testbroker"
	"hapax.dev/once/oncekafkago"
)

func TestMessagesOfKafkaAreActedOnOnce(t *testing.T) {
	address, topic, publish := testbroker.Kafka(t)
	testbroker.Check(t, testbroker.Broker{
		Publish: publish,
		Consume: func(ctx context.Context, consumer *once.Consumer) error {
			reader := kafka.NewReader(kafka.ReaderConfig{
				Brokers: []string{address}, GroupID: topic, Topic: topic, StartOffset: kafka.FirstOffset,
			})
			defer reader.Close()
			return oncekafkago.Consume(ctx, reader, consumer)
		},
	})
}
