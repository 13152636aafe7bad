// Package oncefranz acts once on each record of Kafka, with franz-go.
//
//	consumer := db.Consumer("mailer", mail)
//	err := oncefranz.Consume(ctx, consumer,
//		kgo.SeedBrokers("localhost:9092"), kgo.ConsumerGroup("mailer"), kgo.ConsumeTopics("mails"))
package oncefranz

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hapax.dev/once"
)

const (
	// As many records as can be acted on before the group thinks that this member is gone.
	recordsMax    = 100
	commitTimeout = 10 * time.Second
)

// Consume acts on records until ctx is cancelled, and returns nil then, after what was begun is finished.
// The options name brokers, group and topics; offsets are committed here, behind what was done.
//
// Records of a partition are acted on in their order, and one that has to come again holds up its own
// partition alone.
func Consume(ctx context.Context, consumer *once.Consumer, options ...kgo.Opt) error {
	client, err := kgo.NewClient(append(options, kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll())...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for {
		fetches := client.PollRecords(ctx, recordsMax)
		if ctx.Err() != nil {
			return nil
		}
		if err := failure(fetches); err != nil {
			return err
		}
		work(ctx, client, consumer, fetches)
		client.AllowRebalance()
	}
}

// failure is what keeps records from being fetched; that some are lost is told by the client itself.
func failure(fetches kgo.Fetches) error {
	var lost *kgo.ErrDataLoss
	for _, failed := range fetches.Errors() {
		if !errors.As(failed.Err, &lost) {
			return fmt.Errorf("fetching from %s: %w", failed.Topic, failed.Err)
		}
	}
	return nil
}

// work acts on what was fetched, each partition by itself, and commits how far they came.
func work(ctx context.Context, client *kgo.Client, consumer *once.Consumer, fetches kgo.Fetches) {
	var fetched [][]*kgo.Record
	fetches.EachPartition(func(partition kgo.FetchTopicPartition) { fetched = append(fetched, partition.Records) })
	reached := make([]progress, len(fetched))
	var group sync.WaitGroup
	for i, records := range fetched {
		group.Add(1)
		go func() {
			defer group.Done()
			reached[i] = actOn(ctx, consumer, records)
		}()
	}
	group.Wait()
	var done []*kgo.Record
	for _, partition := range reached {
		if partition.last != nil {
			done = append(done, partition.last)
		}
	}
	committing, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	// What is not committed comes again, and is known then.
	_ = client.CommitRecords(committing, done...)
	for _, partition := range reached {
		if partition.next != nil {
			rewind(client, partition.next, partition.pause)
		}
	}
}

// A progress is how far a partition came: the last record that is done, and the one that has to come
// again, after a pause, if there is one.
type progress struct {
	last, next *kgo.Record
	pause      time.Duration
}

func actOn(ctx context.Context, consumer *once.Consumer, records []*kgo.Record) (reached progress) {
	for _, record := range records {
		if ctx.Err() != nil {
			break
		}
		outcome := consumer.Deliver(context.WithoutCancel(ctx), message(record))
		if !outcome.Done {
			reached.next, reached.pause = record, outcome.Pause
			break
		}
		reached.last = record
	}
	return reached
}

// rewind lets a partition go on at a record, after a pause.
func rewind(client *kgo.Client, record *kgo.Record, pause time.Duration) {
	partition := map[string][]int32{record.Topic: {record.Partition}}
	client.PauseFetchPartitions(partition)
	client.SetOffsets(map[string]map[int32]kgo.EpochOffset{
		record.Topic: {record.Partition: {Epoch: record.LeaderEpoch, Offset: record.Offset}},
	})
	time.AfterFunc(pause, func() { client.ResumeFetchPartitions(partition) })
}

func message(record *kgo.Record) once.Message {
	header := make(map[string]string, len(record.Headers))
	for _, line := range record.Headers {
		header[line.Key] = string(line.Value)
	}
	return once.Message{
		BrokerID: fmt.Sprintf("%s/%d/%d", record.Topic, record.Partition, record.Offset),
		Source:   record.Topic, Key: string(record.Key), Header: header, Payload: record.Value,
	}
}
