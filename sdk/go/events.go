package once

import (
	"context"
	"encoding/json"
)

// An Event is published if the transaction commits that it is emitted in, and only then.
type Event struct {
	Topic string
	// Key orders: events of one topic and key are published as their transactions committed.
	Key     string
	Payload []byte
	Header  map[string]string
	// ContentType is application/json if nothing is said.
	ContentType string
	// ID is a new UUID if nothing is said.
	ID string
}

// Emit publishes an event if the transaction commits, and returns its id. Emit last: others that emit
// under the same topic and key wait until the transaction has ended.
func (db *DB[T, Q]) Emit(ctx context.Context, tx Q, event Event) (string, error) {
	q := db.driver.Querier(tx)
	if err := db.checkSchema(ctx, q); err != nil {
		return "", err
	}
	c := &call{"SELECT e.id::text FROM hapax.emit($1::text, $2::text, $3::bytea", []any{event.Topic, event.Key, some(event.Payload)}}
	if len(event.Header) > 0 {
		header, err := json.Marshal(event.Header)
		if err != nil {
			return "", err
		}
		c.with("headers", "jsonb", string(header))
	}
	if event.ContentType != "" {
		c.with("content_type", "text", event.ContentType)
	}
	if event.ID != "" {
		c.with("id", "uuid", event.ID)
	}
	var id string
	err := c.row(ctx, q, " AS e(id)"+inTransaction, &id)
	return id, err
}
