package once

import (
	"context"
	"strconv"
	"time"
)

// A call spells the call of an SQL function. Arguments that are not given have the function's own defaults.
type call struct {
	text []byte
	args []any
}

// inTransaction keeps a function from being called where it would be a transaction of its own: there is
// no row then.
const inTransaction = " WHERE now() <> statement_timestamp()"

func function(before string) *call {
	text := make([]byte, 0, 512)
	return &call{text: append(append(text, before...), '(')}
}

// arg adds an argument, by its place if it has no name. The type is always said: a driver that does not
// ask the server for types would have it guess.
func (c *call) arg(name, sqlType string, value any) *call {
	if len(c.args) > 0 {
		c.text = append(c.text, ", "...)
	}
	if name != "" {
		c.text = append(append(c.text, name...), " => "...)
	}
	c.args = append(c.args, value)
	c.text = strconv.AppendInt(append(c.text, '$'), int64(len(c.args)), 10)
	c.text = append(append(c.text, "::"...), sqlType...)
	return c
}

func (c *call) end(behind string) *call {
	c.text = append(append(c.text, ')'), behind...)
	return c
}

// row makes the call, and reads its row.
func (c *call) row(ctx context.Context, q Querier, dest ...any) error {
	return translated(q.QueryRow(ctx, string(c.text), c.args...).Scan(dest...))
}

func interval(span time.Duration) string {
	return strconv.FormatInt(span.Microseconds(), 10) + " microseconds"
}
