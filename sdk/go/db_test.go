package once_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hapax.dev/once"
	"hapax.dev/once/internal/testdb"
)

const insert = "INSERT INTO effects (name) VALUES ($1)"

func operation(key string) once.Operation {
	return once.Operation{Tenant: "shop", Scope: "POST /payments", Key: key, Request: []byte("{}")}
}

// key is one that nobody used.
func key() string {
	return fmt.Sprintf("key-%d", keys.Add(1))
}

var keys atomic.Int64

var paid = &once.Answer{Status: 201, Header: http.Header{"X-Paid": {"yes", "twice"}}, Body: []byte("paid\x00\xff")}

// pay is work that writes an effect.
func pay(effect string) work {
	return func(_ context.Context, write writer) (*once.Answer, error) {
		return paid, write(insert, effect)
	}
}

func same(t *testing.T, said, expected *once.Answer, replayed bool) {
	t.Helper()
	if said.Status != expected.Status || !bytes.Equal(said.Body, expected.Body) || said.Replayed != replayed {
		t.Errorf("said %+v", said)
	}
	for name, values := range expected.Header {
		if !slices.Equal(said.Header[name], values) {
			t.Errorf("said %v, not %v", said.Header, expected.Header)
		}
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func equal[T comparable](t *testing.T, got, expected T) {
	t.Helper()
	if got != expected {
		t.Errorf("got %v, expected %v", got, expected)
	}
}

func is(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, expected %v", err, kind)
	}
}

func TestTheFirstCallRunsAndASecondOneIsAnsweredWithWhatItSaid(t *testing.T) {
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		shop, name := open(database.URL()), key()
		first := must[*once.Answer](t)(shop.once(t.Context(), operation(name), pay(name)))
		same(t, first, paid, false)
		second := must[*once.Answer](t)(shop.once(t.Context(), operation(name), pay(name)))
		same(t, second, paid, true)
		equal(t, second.Expires.Equal(first.Expires) && time.Until(first.Expires) > 23*time.Hour, true)
		equal(t, database.Effects(name), 1)

		silent := key()
		none := func(context.Context, writer) (*once.Answer, error) { return nil, nil }
		for _, replayed := range []bool{false, true} {
			same(t, must[*once.Answer](t)(shop.once(t.Context(), operation(silent), none)), &once.Answer{Status: 200}, replayed)
		}
	})
}

func TestOfSixteenDuplicatesAtOnceOneRunsAndAllHearTheSame(t *testing.T) {
	levels := []sql.IsolationLevel{sql.LevelDefault, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		shop := open(database.URL())
		for _, level := range levels {
			name := key()
			op := operation(name)
			op.Isolation, op.Wait = level, 20*time.Second
			var group sync.WaitGroup
			var first atomic.Int32
			for range 16 {
				group.Add(1)
				go func() {
					defer group.Done()
					said, err := shop.once(t.Context(), op, pay(name))
					if err != nil {
						t.Errorf("%v: %v", level, err)
						return
					}
					equal(t, string(said.Body), string(paid.Body))
					if !said.Replayed {
						first.Add(1)
					}
				}()
			}
			group.Wait()
			equal(t, first.Load(), 1)
			equal(t, database.Effects(name), 1)
		}
	})
}

func TestAnotherRequestUnderTheKeyIsToldWithWhatDiffers(t *testing.T) {
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		shop, name := open(database.URL()), key()
		must[*once.Answer](t)(shop.once(t.Context(), operation(name), pay(name)))
		other := operation(name)
		other.Query, other.Request = "dry=1", []byte("[]")
		_, err := shop.once(t.Context(), other, pay(name))
		var mismatch *once.MismatchError
		if !errors.As(err, &mismatch) || !slices.Equal(mismatch.Differs, []string{"query", "body"}) {
			t.Errorf("got %v", err)
		}
		is(t, err, once.ErrMismatch)
		equal(t, database.Effects(name), 1)
	})
}

func TestAFailureThatIsKeptIsReplayedAndItsWritesAreGone(t *testing.T) {
	poor := &once.Answer{Status: 402, Body: []byte("no money")}
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		shop := open(database.URL())
		for _, failing := range []func() (*once.Answer, error){
			func() (*once.Answer, error) { return poor, nil },
			func() (*once.Answer, error) { return nil, fmt.Errorf("paying: %w", once.Refuse(poor)) },
		} {
			name := key()
			refusing := func(_ context.Context, write writer) (*once.Answer, error) {
				if err := write(insert, name); err != nil {
					return nil, err
				}
				// Also where a statement has failed: the savepoint is before it.
				_ = write("SELECT 1 / 0")
				return failing()
			}
			same(t, must[*once.Answer](t)(shop.once(t.Context(), operation(name), refusing)), poor, false)
			same(t, must[*once.Answer](t)(shop.once(t.Context(), operation(name), pay(name))), poor, true)
			equal(t, database.Effects(name), 0)
		}
	})
}

func TestWhatFailsLeavesNothingAndTheNextCallRuns(t *testing.T) {
	broken := errors.New("out of paper")
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		shop, name := open(database.URL()), key()
		_, err := shop.once(t.Context(), operation(name), func(ctx context.Context, write writer) (*once.Answer, error) {
			_ = write(insert, name)
			return nil, broken
		})
		equal(t, err, broken)
		func() {
			defer func() { equal(t, recover(), any("on fire")) }()
			_, _ = shop.once(t.Context(), operation(name), func(ctx context.Context, write writer) (*once.Answer, error) {
				_ = write(insert, name)
				panic("on fire")
			})
		}()
		later := &once.Answer{Status: 503}
		said := must[*once.Answer](t)(shop.once(t.Context(), operation(name), func(_ context.Context, write writer) (*once.Answer, error) {
			return later, write(insert, name)
		}))
		same(t, said, later, false)
		equal(t, said.Expires.IsZero(), true)
		same(t, must[*once.Answer](t)(shop.once(t.Context(), operation(name), pay(name))), paid, false)
		equal(t, database.Effects(name), 1)
	})
}

func TestADuplicateThatWaitsTooLongHearsThatItIsBusy(t *testing.T) {
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		shop, name := open(database.URL()), key()
		first := shop.transaction(t)
		must[*once.Answer](t)(first.within(t.Context(), operation(name), pay(name)))
		op := operation(name)
		op.Wait = -1
		_, err := shop.once(t.Context(), op, pay(name))
		var busy *once.BusyError
		if !errors.As(err, &busy) || busy.RetryAfter < time.Second {
			t.Errorf("got %v", err)
		}
		first.end(true)
		same(t, must[*once.Answer](t)(shop.once(t.Context(), op, pay(name))), paid, true)
	})
}

func TestAConflictIsTriedSixTimesAndThenTold(t *testing.T) {
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		shop, name, tries := open(database.URL()), key(), 0
		_, err := shop.once(t.Context(), operation(name), func(_ context.Context, write writer) (*once.Answer, error) {
			tries++
			err := write("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$")
			return nil, fmt.Errorf("paying: %w", err)
		})
		is(t, err, once.ErrConflict)
		equal(t, tries, 6)
		tries = 0
		said := must[*once.Answer](t)(shop.once(t.Context(), operation(name), func(_ context.Context, write writer) (*once.Answer, error) {
			if tries++; tries < 3 {
				err := write("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40P01'; END $$")
				// Also if the work takes it for a failure for good.
				return nil, errors.Join(once.Refuse(&once.Answer{Status: 409}), err)
			}
			return paid, write(insert, name)
		}))
		same(t, said, paid, false)
		equal(t, tries, 3)
	})
}

func TestACommitWhoseAnswerIsLostIsFoundOut(t *testing.T) {
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		proxy := testdb.NewProxy(t, database)
		shop, warm := open(database.By(proxy.Address())), key()
		must[*once.Answer](t)(shop.once(t.Context(), operation(warm), pay(warm)))
		for cut, replayed := range map[testdb.Cut]bool{testdb.Before: false, testdb.Behind: true} {
			name := key()
			proxy.Cut(cut, false)
			same(t, must[*once.Answer](t)(shop.once(t.Context(), operation(name), pay(name))), paid, replayed)
			equal(t, proxy.WasCut(), true)
			equal(t, database.Effects(name), 1)
		}
		name := key()
		proxy.Cut(testdb.Behind, true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := shop.once(ctx, operation(name), pay(name))
		is(t, err, once.ErrOutcomeUnknown)
		equal(t, database.Effects(name), 1)
		_, err = shop.once(t.Context(), operation(name), pay(name))
		is(t, err, once.ErrUnavailable)
	})
}

func TestWhoeverStopsWaitingStopsTheWorkButNoCommit(t *testing.T) {
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		shop, name := open(database.URL()), key()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := shop.once(ctx, operation(name), func(_ context.Context, write writer) (*once.Answer, error) {
			_ = write(insert, name)
			cancel()
			return paid, nil
		})
		is(t, err, context.Canceled)
		equal(t, database.Effects(name), 0)

		name = "slow-" + name
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for database.Number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'") == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		same(t, must[*once.Answer](t)(shop.once(ctx, operation(name), pay(name))), paid, false)
		equal(t, ctx.Err(), context.Canceled)
		equal(t, database.Effects(name), 1)
	})
}

func TestWithinATransactionEverythingIsTheCallers(t *testing.T) {
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		shop, name := open(database.URL()), key()
		for _, commits := range []bool{false, true} {
			tx := shop.transaction(t)
			same(t, must[*once.Answer](t)(tx.within(t.Context(), operation(name), pay(name))), paid, false)
			same(t, must[*once.Answer](t)(tx.within(t.Context(), operation(name), pay(name))), paid, true)
			_, err := tx.emit(t.Context(), once.Event{
				Topic: "paid", Key: name, Payload: []byte("{}"), Header: map[string]string{"a": "b"}, ContentType: "text/plain",
			})
			if err != nil {
				t.Fatal(err)
			}
			tx.end(commits)
			_, err = tx.emit(t.Context(), once.Event{Topic: "paid", Key: name})
			is(t, err, once.ErrNotInTransaction)
		}
		equal(t, database.Effects(name), 1)
		equal(t, database.Number("SELECT count(*) FROM hapax.outbox WHERE content_type = 'text/plain' AND key = '"+name+"'"), 1)
	})
}

func TestAnErrorWithinATransactionGivesTheKeyBackAndTheTransactionGoesOn(t *testing.T) {
	broken := errors.New("out of paper")
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		shop, name := open(database.URL()), key()
		tx := shop.transaction(t)
		if err := tx.write(insert, "before-"+name); err != nil {
			t.Fatal(err)
		}
		_, err := tx.within(t.Context(), operation(name), func(_ context.Context, write writer) (*once.Answer, error) {
			_ = write(insert, name)
			_ = write("SELECT 1 / 0")
			return nil, broken
		})
		equal(t, err, broken)
		func() {
			defer func() { equal(t, recover(), any("on fire")) }()
			_, _ = tx.within(t.Context(), operation(name), func(context.Context, writer) (*once.Answer, error) { panic("on fire") })
		}()
		ctx, cancel := context.WithCancel(t.Context())
		_, err = tx.within(ctx, operation(name), func(context.Context, writer) (*once.Answer, error) {
			cancel()
			return paid, nil
		})
		is(t, err, context.Canceled)
		// The same operation inside of itself.
		_, err = tx.within(t.Context(), operation(name), func(ctx context.Context, _ writer) (*once.Answer, error) {
			return tx.within(ctx, operation(name), pay(name))
		})
		is(t, err, once.ErrBegunAlready)
		// Another one inside of it, and a failure that is kept around both.
		inner := key()
		said, err := tx.within(t.Context(), operation(name), func(ctx context.Context, _ writer) (*once.Answer, error) {
			if _, err := tx.within(ctx, operation(inner), pay(inner)); err != nil {
				return nil, err
			}
			return &once.Answer{Status: 402}, nil
		})
		same(t, must[*once.Answer](t)(said, err), &once.Answer{Status: 402}, false)
		tx.end(true)
		equal(t, database.Effects("before-"+name), 1)
		equal(t, database.Effects(name)+database.Effects(inner), 0)
		same(t, must[*once.Answer](t)(shop.once(t.Context(), operation(name), pay(name))), &once.Answer{Status: 402}, true)
		same(t, must[*once.Answer](t)(shop.once(t.Context(), operation(inner), pay(inner))), paid, false)
	})
}

func TestAnOperationHasTheIDThatAllLanguagesGiveIt(t *testing.T) {
	type vector struct{ Tenant, Scope, Key, Operation string }
	vectors := testdb.Vectors[vector](t, "operations.json")
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		shop := open(database.URL())
		for _, v := range vectors {
			op := once.Operation{Tenant: v.Tenant, Scope: v.Scope, Key: v.Key}
			must[*once.Answer](t)(shop.once(t.Context(), op, pay(v.Operation)))
			equal(t, database.Number("SELECT count(*) FROM hapax.operations WHERE id = '"+v.Operation+"'"), 1)
		}
	})
}

func TestARequestHasTheFingerprintThatAllLanguagesGiveIt(t *testing.T) {
	type vector struct{ Salt, Tenant, Method, Path, Query, Body, Fingerprint string }
	vectors := testdb.Vectors[vector](t, "fingerprints.json")
	eachDriver(t, func(t *testing.T, database *testdb.Database, open func(string) shop) {
		shop := open(database.URL())
		for _, v := range vectors {
			database.Run("UPDATE hapax.meta SET salt = decode('" + v.Salt + "', 'hex')")
			op := once.Operation{
				Tenant: v.Tenant, Scope: "scope", Key: key(),
				Request: []byte(v.Body), Method: v.Method, Path: v.Path, Query: v.Query,
			}
			must[*once.Answer](t)(shop.once(t.Context(), op, pay(op.Key)))
			stored := "FROM hapax.operations WHERE key = '" + op.Key + "' AND encode(fingerprint, 'hex') = '" + v.Fingerprint + "'"
			equal(t, database.Number("SELECT count(*) "+stored), 1)
		}
	})
}
