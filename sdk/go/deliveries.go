package once

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// A Message is what a broker delivers, perhaps more than once.
type Message struct {
	// ID is the sender's name for it. If it is empty, the header is looked through for that of a
	// CloudEvent or of the broker; see [Consumer].
	ID string
	// BrokerID is what the broker calls it, where nobody else does.
	BrokerID string
	// Source is where it comes from: a topic, a subject, a queue.
	Source  string
	Key     string
	Header  map[string]string
	Payload []byte
}

// Headers in which senders say which message it is: CloudEvents, as the bindings spell them, JetStream's
// own, and the property of AMQP.
var idHeaders = []string{"ce-id", "ce_id", "cloudEvents:id", "cloudEvents_id", "Nats-Msg-Id", "message_id"}

func (m *Message) id() string {
	if m.ID != "" {
		return m.ID
	}
	for _, wanted := range idHeaders {
		for name, value := range m.Header {
			if strings.EqualFold(name, wanted) {
				return value
			}
		}
	}
	return m.BrokerID
}

// An Inbox is what remembers the messages of a consumer. Its zero values are the database's defaults.
type Inbox struct {
	Consumer string
	// Tenant is "messages" if nothing is said.
	Tenant string
	// Retention must be longer than the broker can deliver a message again; a week if nothing is said.
	Retention time.Duration
}

// call is that of a function about a message: the text up to its consumer.
func (in *Inbox) call(text string, msg *Message) *call {
	c := &call{text + "($1::text, $2::text, $3::bytea", []any{in.Consumer, msg.id(), some(msg.Payload)}}
	if in.Tenant != "" {
		c.with("tenant", "text", in.Tenant)
	}
	if in.Retention != 0 {
		c.with("retention", "interval", interval(in.Retention))
	}
	return c
}

// FirstDelivery says whether this is the first delivery of a message to a consumer, in the transaction of
// what the consumer writes. [ErrBusy]: another delivery is at it; [ErrOtherContent]: its id was used for
// something else. A [Consumer] does this for every message.
func (db *DB[T, Q]) FirstDelivery(ctx context.Context, tx Q, in Inbox, msg Message) (bool, error) {
	return db.firstDelivery(ctx, db.driver.Querier(tx), &in, &msg)
}

func (db *DB[T, Q]) firstDelivery(ctx context.Context, q Querier, in *Inbox, msg *Message) (bool, error) {
	if err := db.checkSchema(ctx, q); err != nil {
		return false, err
	}
	var first bool
	err := in.call("SELECT d.first FROM hapax.first_delivery", msg).row(ctx, q, " AS d(first)"+inTransaction, &first)
	return first, err
}

// A Failure is why a message could not be acted on.
type Failure struct {
	Reason string
	// AttemptsMax is how many attempts there are; ten if nothing is said. The last one makes the message
	// a dead letter.
	AttemptsMax int
	// ForGood says that no other attempt would do better. There is no dead letter then.
	ForGood bool
}

// FailDelivery counts a failed attempt to act on a message, in a transaction of its own after that of the
// attempt was rolled back. It returns how many have failed, and whether the message is over: acknowledge
// it then.
func (db *DB[T, Q]) FailDelivery(ctx context.Context, in Inbox, msg Message, failure Failure) (attempts int, over bool, err error) {
	tx, err := db.driver.Begin(ctx, 0)
	if err != nil {
		return 0, false, translated(err)
	}
	commits := false
	defer func() {
		if !commits {
			undo(ctx, tx)
		}
	}()
	if err := db.checkSchema(ctx, tx); err != nil {
		return 0, false, err
	}
	c := in.call("SELECT attempts, is_over FROM hapax.fail_delivery", &msg)
	c.with("reason", "text", visible(failure.Reason))
	c.with("for_good", "boolean", failure.ForGood)
	c.with("source", "text", visible(msg.Source))
	if failure.AttemptsMax != 0 {
		c.with("attempts_max", "integer", int32(failure.AttemptsMax))
	}
	if msg.Key != "" {
		c.with("key", "text", visible(msg.Key))
	}
	if len(msg.Header) > 0 {
		header := make(map[string]string, len(msg.Header))
		for name, value := range msg.Header {
			header[visible(name)] = visible(value)
		}
		// A map of texts has a spelling in JSON.
		spelled, _ := json.Marshal(header)
		c.with("headers", "jsonb", string(spelled))
	}
	var failed int32
	if err := c.row(ctx, tx, "", &failed, &over); err != nil {
		return 0, false, err
	}
	commits = true
	return int(failed), over, commit(ctx, tx)
}

// visible is a text that the database can hold.
func visible(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
