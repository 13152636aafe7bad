package testbroker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"hapax.dev/once/internal/testdb"
)

// Kafka creates a topic of three partitions, and says where it is and how to publish to it.
func Kafka(t *testing.T) (address, topic string, publish func(id, key, payload string)) {
	address = strings.TrimPrefix(testdb.Service(t, "kafka"), "kafka://")
	topic = fmt.Sprintf("hapax-go-%d", time.Now().UnixNano())
	client := &kafka.Client{Addr: kafka.TCP(address), Timeout: 10 * time.Second}
	created, err := client.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 3, ReplicationFactor: 1}},
	})
	if err == nil {
		err = created.Errors[topic]
	}
	if err != nil {
		t.Fatal(err)
	}
	writer := &kafka.Writer{
		Addr: kafka.TCP(address), Topic: topic, Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond,
	}
	t.Cleanup(func() { _ = writer.Close() })
	publish = func(id, key, payload string) {
		message := kafka.Message{Key: []byte(key), Value: []byte(payload), Headers: []kafka.Header{{Key: "ce_id", Value: []byte(id)}}}
		for tries := 0; ; tries++ {
			err := writer.WriteMessages(t.Context(), message)
			if err == nil {
				return
			}
			// A topic that was just created has no leader yet.
			if tries == 20 {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return address, topic, publish
}
