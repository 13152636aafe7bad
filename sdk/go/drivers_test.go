package once_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"

	"hapax.dev/once"
	"hapax.dev/once/internal/testdb"
	"hapax.dev/once/oncepgx"
	"hapax.dev/once/oncesql"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// A shop uses a database with one driver.
type shop interface {
	// once runs work that writes with the function it is given.
	once(ctx context.Context, op once.Operation, work work) (*once.Answer, error)
	// transaction begins a transaction of the caller's, in which operations run.
	transaction(t *testing.T) callers
}

type work func(ctx context.Context, write writer) (*once.Answer, error)

// A writer sends a statement in the transaction of the work.
type writer func(statement string, args ...any) error

// A callers transaction is one that the caller has begun.
type callers interface {
	within(ctx context.Context, op once.Operation, work work) (*once.Answer, error)
	emit(ctx context.Context, event once.Event) (string, error)
	write(statement string, args ...any) error
	end(commits bool)
}

// eachDriver runs a test with every driver, in a database of its own, or by another way to it.
func eachDriver(t *testing.T, check func(t *testing.T, database *testdb.Database, open func(url string) shop)) {
	drivers := map[string]func(*testing.T, string) shop{
		"pgx":    openPgx,
		"sqlpgx": func(t *testing.T, url string) shop { return openSQL(t, "pgx", url) },
		"sqlpq":  func(t *testing.T, url string) shop { return openSQL(t, "postgres", url+"?sslmode=disable") },
	}
	database := testdb.New(t)
	for name, open := range drivers {
		t.Run(name, func(t *testing.T) {
			check(t, database, func(url string) shop { return open(t, url) })
		})
	}
}

// A shopOf uses a database with a driver of these types.
type shopOf[T, Q any] struct {
	db    *once.DB[T, Q]
	begin func() (T, error)
	end   func(tx T, commits bool) error
	as    func(T) Q
	exec  func(ctx context.Context, q Q, statement string, args ...any) error
}

func openPgx(t *testing.T, url string) shop {
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &shopOf[pgx.Tx, oncepgx.Querier]{
		db:    oncepgx.New(pool),
		begin: func() (pgx.Tx, error) { return pool.Begin(t.Context()) },
		end: func(tx pgx.Tx, commits bool) error {
			if commits {
				return tx.Commit(context.Background())
			}
			return tx.Rollback(context.Background())
		},
		as: func(tx pgx.Tx) oncepgx.Querier { return tx },
		exec: func(ctx context.Context, q oncepgx.Querier, statement string, args ...any) error {
			_, err := q.Exec(ctx, statement, args...)
			return err
		},
	}
}

func openSQL(t *testing.T, driver, url string) shop {
	pool, err := sql.Open(driver, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	pool.SetMaxOpenConns(8)
	return &shopOf[*sql.Tx, oncesql.Querier]{
		db:    oncesql.New(pool),
		begin: func() (*sql.Tx, error) { return pool.Begin() },
		end: func(tx *sql.Tx, commits bool) error {
			if commits {
				return tx.Commit()
			}
			return tx.Rollback()
		},
		as: func(tx *sql.Tx) oncesql.Querier { return tx },
		exec: func(ctx context.Context, q oncesql.Querier, statement string, args ...any) error {
			_, err := q.ExecContext(ctx, statement, args...)
			return err
		},
	}
}

func (s *shopOf[T, Q]) once(ctx context.Context, op once.Operation, work work) (*once.Answer, error) {
	return s.db.Once(ctx, op, func(ctx context.Context, tx T) (*once.Answer, error) {
		return work(ctx, s.writer(ctx, tx))
	})
}

func (s *shopOf[T, Q]) writer(ctx context.Context, tx T) writer {
	return func(statement string, args ...any) error { return s.exec(ctx, s.as(tx), statement, args...) }
}

type callersOf[T, Q any] struct {
	t    *testing.T
	shop *shopOf[T, Q]
	tx   T
}

func (s *shopOf[T, Q]) transaction(t *testing.T) callers {
	tx, err := s.begin()
	if err != nil {
		t.Fatal(err)
	}
	return &callersOf[T, Q]{t, s, tx}
}

func (c *callersOf[T, Q]) within(ctx context.Context, op once.Operation, work work) (*once.Answer, error) {
	return c.shop.db.Within(ctx, c.shop.as(c.tx), op, func(ctx context.Context) (*once.Answer, error) {
		return work(ctx, c.shop.writer(ctx, c.tx))
	})
}

func (c *callersOf[T, Q]) emit(ctx context.Context, event once.Event) (string, error) {
	return c.shop.db.Emit(ctx, c.shop.as(c.tx), event)
}

func (c *callersOf[T, Q]) write(statement string, args ...any) error {
	return c.shop.writer(context.Background(), c.tx)(statement, args...)
}

func (c *callersOf[T, Q]) end(commits bool) {
	c.t.Helper()
	if err := c.shop.end(c.tx, commits); err != nil {
		c.t.Fatal(err)
	}
}
