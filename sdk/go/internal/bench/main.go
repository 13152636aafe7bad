// The benchmark holds the SDK against the SQL functions called by hand, with the same driver, in
// alternating rounds.
package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"log"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"hapax.dev/once"
	"hapax.dev/once/internal/testdb"
	"hapax.dev/once/oncepgx"
	"hapax.dev/once/oncesql"
)

const (
	begin = `SELECT decision, operation::text, fence, status, headers::text, body, retry_after, expires_at
		FROM hapax.begin_bytes($1, $2, $3, $4, $5, $6, $7)`
	insert = "INSERT INTO effects (name) VALUES ($1)"
	finish = "SELECT hapax.finish($1::uuid, $2, $3, $4::jsonb, $5::bytea)"
)

var request, body = []byte(`{"cents":500}`), []byte(`{"paid":true}` + "\n")

// A way is how an operation is run once, under a key of its own.
type way func(ctx context.Context, key string) error

func main() {
	rounds := flag.Int("rounds", 200, "how many rounds of each")
	calls := flag.Int("calls", 10, "how many calls in a round")
	flag.Parse()
	server, err := testdb.Find("postgres")
	check(err)
	at, drop, err := testdb.Create(server)
	check(err)
	defer drop()
	// As the contexts of services are, which drivers have to watch.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pool, err := pgxpool.New(ctx, at.String())
	check(err)
	defer pool.Close()
	standard, err := sql.Open("pgx", at.String())
	check(err)
	defer standard.Close()
	compare(ctx, "pgx", *rounds, *calls, pgxByHand(pool), pgxOnce(pool))
	compare(ctx, "database-sql", *rounds, *calls, sqlByHand(standard), sqlOnce(standard))
}

// compare prints what a call takes by hand and with the SDK, and how much longer that is, each as the
// median of all rounds.
func compare(ctx context.Context, name string, rounds, calls int, byHand, withSDK way) {
	var hand, sdk, ratios []float64
	for round := range rounds {
		first := measure(ctx, byHand, fmt.Sprintf("%s-hand-%d", name, round), calls)
		second := measure(ctx, withSDK, fmt.Sprintf("%s-sdk-%d", name, round), calls)
		// The first round prepares statements and connections.
		if round > 0 {
			hand, sdk, ratios = append(hand, first), append(sdk, second), append(ratios, second/first)
		}
	}
	figure := "{\"driver\": %q, \"hand_us\": %.0f, \"once_us\": %.0f, \"ratio\": %.3f}\n"
	fmt.Printf(figure, name, median(hand), median(sdk), median(ratios))
}

func measure(ctx context.Context, run way, prefix string, calls int) float64 {
	begun := time.Now()
	for call := range calls {
		check(run(ctx, fmt.Sprintf("%s-%d", prefix, call)))
	}
	return float64(time.Since(begun).Microseconds()) / float64(calls)
}

func median(figures []float64) float64 {
	slices.Sort(figures)
	return figures[len(figures)/2]
}

// A row is what hapax.begin says.
type row struct {
	decision, operation string
	fence               int64
	status, retryAfter  *int32
	headers             *string
	body                []byte
	expires             *time.Time
}

func (r *row) columns() []any {
	return []any{&r.decision, &r.operation, &r.fence, &r.status, &r.headers, &r.body, &r.retryAfter, &r.expires}
}

func asked(key string) []any {
	return []any{"shop", "POST /payments", key, request, "POST", "/payments", ""}
}

func said(r *row) []any {
	return []any{r.operation, r.fence, 201, `{"content-type": "application/json"}`, body}
}

func pgxByHand(pool *pgxpool.Pool) way {
	return func(ctx context.Context, key string) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			var r row
			if err := tx.QueryRow(ctx, begin, asked(key)...).Scan(r.columns()...); err != nil {
				return err
			}
			if r.decision != "execute" {
				return fmt.Errorf("it is %s", r.decision)
			}
			if _, err := tx.Exec(ctx, "SAVEPOINT work"); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, insert, key); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, finish, said(&r)...)
			return err
		})
	}
}

func pgxOnce(pool *pgxpool.Pool) way {
	db := oncepgx.New(pool)
	return func(ctx context.Context, key string) error {
		_, err := db.Once(ctx, operation(key), func(ctx context.Context, tx pgx.Tx) (*once.Answer, error) {
			_, err := tx.Exec(ctx, insert, key)
			return paid(), err
		})
		return err
	}
}

func sqlByHand(pool *sql.DB) way {
	return func(ctx context.Context, key string) error {
		tx, err := pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		var r row
		if err := tx.QueryRowContext(ctx, begin, asked(key)...).Scan(r.columns()...); err != nil {
			return err
		}
		if r.decision != "execute" {
			return fmt.Errorf("it is %s", r.decision)
		}
		if _, err := tx.ExecContext(ctx, "SAVEPOINT work"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, insert, key); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, finish, said(&r)...); err != nil {
			return err
		}
		return tx.Commit()
	}
}

func sqlOnce(pool *sql.DB) way {
	db := oncesql.New(pool)
	return func(ctx context.Context, key string) error {
		_, err := db.Once(ctx, operation(key), func(ctx context.Context, tx *sql.Tx) (*once.Answer, error) {
			_, err := tx.ExecContext(ctx, insert, key)
			return paid(), err
		})
		return err
	}
}

func operation(key string) once.Operation {
	return once.Operation{
		Tenant: "shop", Scope: "POST /payments", Key: key, Request: request, Method: "POST", Path: "/payments",
	}
}

func paid() *once.Answer {
	return &once.Answer{Status: 201, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
