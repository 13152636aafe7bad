// The agent uses the SDK as it is told, a command a line: see sdk/conformance.md.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"hapax.dev/once"
	"hapax.dev/once/oncepgx"
	"hapax.dev/once/oncesql"
)

const (
	connectionsMax  = 10
	commandBytesMax = 64 << 20
)

func main() {
	driver := flag.String("driver", "pgx", "pgx or database-sql")
	database := flag.String("database", "", "the URL of the database")
	flag.Parse()
	obey, err := open(*driver, *database)
	if err != nil {
		log.Fatal(err)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	say := func(line any) {
		if err := out.Encode(line); err != nil {
			log.Fatal(err)
		}
	}
	say(map[string]bool{"ready": true})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, commandBytesMax)
	for lines.Scan() {
		say(obey(context.Background(), lines.Bytes()))
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

func open(driver, database string) (func(context.Context, []byte) any, error) {
	switch driver {
	case "pgx":
		return openPgx(database)
	case "database-sql":
		return openSQL(database)
	}
	log.Fatalf("there is no driver %q", driver)
	return nil, nil
}

func openPgx(database string) (func(context.Context, []byte) any, error) {
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		return nil, err
	}
	config.MaxConns = connectionsMax
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	a := agent[pgx.Tx, oncepgx.Querier]{
		open: func() *oncepgx.DB { return oncepgx.New(pool) },
		as:   func(tx pgx.Tx) oncepgx.Querier { return tx },
		exec: func(ctx context.Context, q oncepgx.Querier, statement string, args ...any) error {
			_, err := q.Exec(ctx, statement, args...)
			return err
		},
		connect: func(ctx context.Context) (oncepgx.Querier, func(), error) {
			connection, err := pool.Acquire(ctx)
			return connection, func() { connection.Release() }, err
		},
	}
	a.db = a.open()
	return a.obey, nil
}

func openSQL(database string) (func(context.Context, []byte) any, error) {
	pool, err := sql.Open("pgx", database)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(connectionsMax)
	pool.SetMaxIdleConns(connectionsMax)
	a := agent[*sql.Tx, oncesql.Querier]{
		open: func() *oncesql.DB { return oncesql.New(pool) },
		as:   func(tx *sql.Tx) oncesql.Querier { return tx },
		exec: func(ctx context.Context, q oncesql.Querier, statement string, args ...any) error {
			_, err := q.ExecContext(ctx, statement, args...)
			return err
		},
		connect: func(ctx context.Context) (oncesql.Querier, func(), error) {
			connection, err := pool.Conn(ctx)
			return connection, func() { _ = connection.Close() }, err
		},
	}
	a.db = a.open()
	return a.obey, nil
}

// An agent obeys with one driver.
type agent[T, Q any] struct {
	db      *once.DB[T, Q]
	open    func() *once.DB[T, Q]
	as      func(T) Q
	exec    func(ctx context.Context, q Q, statement string, args ...any) error
	connect func(ctx context.Context) (Q, func(), error)
}
