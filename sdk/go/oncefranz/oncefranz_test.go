package oncefranz_test

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"hapax.dev/once"
	"hapax.dev/once/internal/testbroker"
	"hapax.dev/once/oncefranz"
)

func TestRecordsOfKafkaAreActedOnOnce(t *testing.T) {
	address, topic, publish := testbroker.Kafka(t)
	testbroker.Check(t, testbroker.Broker{
		Publish: publish,
		Consume: func(ctx context.Context, consumer *once.Consumer) error {
			return oncefranz.Consume(ctx, consumer, kgo.SeedBrokers(address), kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic),
				kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		},
	})
}
