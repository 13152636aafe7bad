package once

import (
	"context"
	"strconv"
	"time"
)

// A call is that of an SQL function: its text up to the last argument that is always given, and what may
// follow by name. What does not has the function's own default. Types are always said: a driver that does
// not ask the server for them would have it guess.
type call struct {
	text string
	args []any
}

// inTransaction keeps a function from being called where it would be a transaction of its own: there is
// no row then.
const inTransaction = " WHERE now() <> statement_timestamp()"

func (c *call) with(name, sqlType string, value any) {
	c.args = append(c.args, value)
	c.text += ", " + name + " => $" + strconv.Itoa(len(c.args)) + "::" + sqlType
}

// row makes the call, and reads its row.
func (c *call) row(ctx context.Context, q Querier, behind string, dest ...any) error {
	return translated(q.QueryRow(ctx, c.text+")"+behind, c.args...).Scan(dest...))
}

func interval(span time.Duration) string {
	return strconv.FormatInt(span.Microseconds(), 10) + " microseconds"
}

// some are bytes that are not NULL.
func some(bytes []byte) []byte {
	if bytes == nil {
		return []byte{}
	}
	return bytes
}
