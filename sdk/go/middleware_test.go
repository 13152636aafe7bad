package once_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/jackc/pgx/v5/pgxpool"

	"hapax.dev/once"
	"hapax.dev/once/internal/testdb"
	"hapax.dev/once/oncepgx"
)

// A service is one with routes of chi, on a real port.
type service struct {
	*httptest.Server
	database *testdb.Database
	pool     *pgxpool.Pool
	db       *oncepgx.DB
	logged   *strings.Builder
}

func serve(t *testing.T, routes func(s *service, r chi.Router)) *service {
	database := testdb.New(t)
	return serveBy(t, database, database.URL(), routes)
}

func serveBy(t *testing.T, database *testdb.Database, url string, routes func(s *service, r chi.Router)) *service {
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := &service{database: database, pool: pool, db: oncepgx.New(pool), logged: new(strings.Builder)}
	router := chi.NewRouter()
	router.Use(chimiddleware.RequestID)
	routes(s, router)
	s.Server = httptest.NewServer(router)
	t.Cleanup(s.Server.Close)
	return s
}

func (s *service) protect(options once.HTTP) func(http.Handler) http.Handler {
	if options.Tenant == nil {
		options.Tenant = once.OneTenant("shop")
	}
	options.Log = slog.New(slog.NewTextHandler(s.logged, nil))
	return s.db.Middleware(options)
}

// write writes an effect named like the body in the transaction of the request.
func write(r *http.Request) (string, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	var order struct{ Name string }
	name := string(body)
	if json.Unmarshal(body, &order) == nil {
		name = order.Name
	}
	_, err = oncepgx.Tx(r.Context()).Exec(r.Context(), insert, name)
	return name, err
}

func created(w http.ResponseWriter, r *http.Request) {
	name, err := write(r)
	if err != nil {
		once.Fail(w, r, err)
		return
	}
	w.Header().Add("X-Name", name)
	w.Header().Add("X-Name", "again")
	w.Header().Set("Set-Cookie", "session=1")
	w.WriteHeader(http.StatusCreated)
	w.Header().Set("X-Late", "not sent")
	_, _ = fmt.Fprintf(w, "created %s\n", name)
}

type heard struct {
	status int
	header http.Header
	body   string
}

// post asks as a client does.
func (s *service) post(t *testing.T, path, key, contentType, body string) heard {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return heard{response.StatusCode, response.Header, string(said)}
}

func TestARequestIsRunOnceAndReplayedByteForByte(t *testing.T) {
	s := serve(t, func(s *service, r chi.Router) {
		r.With(s.protect(once.HTTP{})).Post("/orders/{id}", created)
	})
	first := s.post(t, "/orders/1?dry=0", "k-1", "text/plain", "apple")
	second := s.post(t, "/orders/1?dry=0", `"k-1"`, "text/plain", "apple")
	for i, said := range []heard{first, second} {
		equal(t, said.status, 201)
		equal(t, said.body, "created apple\n")
		equal(t, strings.Join(said.header.Values("X-Name"), " "), "apple again")
		equal(t, said.header.Get("Content-Type"), "text/plain; charset=utf-8")
		equal(t, said.header.Get("Idempotent-Replayed"), []string{"", "true"}[i])
		equal(t, said.header.Get("Set-Cookie"), []string{"session=1", ""}[i])
		equal(t, said.header.Get("X-Late"), "")
		expires, err := http.ParseTime(said.header.Get("Idempotency-Expires"))
		equal(t, err == nil && time.Until(expires) > 23*time.Hour, true)
	}
	equal(t, s.database.Effects("apple"), 1)
	equal(t, s.post(t, "/orders/2?dry=0", "k-1", "text/plain", "apple").header.Get("Idempotent-Replayed"), "")
	other := s.post(t, "/orders/1?dry=1", "k-1", "text/plain", "pear")
	equal(t, other.status, 422)
	equal(t, other.header.Get("Hapax-Refusal"), "key-reused")
	equal(t, strings.Contains(other.body, `"differs":["query","body"]`), true)
	equal(t, s.database.Number("SELECT count(*) FROM hapax.operations WHERE tenant = 'shop' AND scope = 'POST /orders/1' AND key = 'k-1'"), 1)
}

func TestJSONIsComparedByItsValueWithoutWhatIsIgnored(t *testing.T) {
	s := serve(t, func(s *service, r chi.Router) {
		r.With(s.protect(once.HTTP{Ignore: []string{"/sent_at"}})).Post("/orders", created)
	})
	first := s.post(t, "/orders", "k-1", "application/json; charset=utf-8", `{"name": "apple", "sent_at": 1, "cents": 100}`)
	equal(t, first.status, 201)
	for body, status := range map[string]int{
		`{"cents":1e2,"sent_at":2,"name":"apple"}`: 201,
		`{"cents":101,"sent_at":2,"name":"apple"}`: 422,
		`{"cents":100,"cents":100}`:                422,
	} {
		equal(t, s.post(t, "/orders", "k-1", "application/vnd.order+json", body).status, status)
	}
	equal(t, s.post(t, "/orders", "k-1", "text/plain", `{"cents":1e2,"sent_at":2,"name":"apple"}`).status, 422)
	equal(t, s.database.Effects("apple"), 1)
}

func TestWhatCannotBeProtectedIsRefusedBeforeAnythingIsRun(t *testing.T) {
	s := serve(t, func(s *service, r chi.Router) {
		tenant := func(r *http.Request) string { return r.Header.Get("Content-Language") }
		r.With(s.protect(once.HTTP{Tenant: tenant})).Post("/unknown", created)
		protected := r.With(s.protect(once.HTTP{BodyMax: 8}))
		protected.Post("/*", created)
		protected.Get("/*", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "read") })
	})
	for _, refused := range []struct {
		path, key, body, code string
		status                int
	}{
		{"/orders", "", "apple", "key-missing", 400},
		{"/orders", "a;b", "apple", "key-malformed", 400},
		{"/orders", `""`, "apple", "key-empty", 400},
		{"/orders", strings.Repeat("k", 256), "apple", "key-too-long", 400},
		{"/orders", "k", "pineapples", "body-too-large", 413},
		{"/" + strings.Repeat("o", 1024), "k", "apple", "scope-unusable", 400},
		{"/unknown", "k", "apple", "credential-missing", 401},
	} {
		said := s.post(t, refused.path, refused.key, "text/plain", refused.body)
		equal(t, said.status, refused.status)
		equal(t, said.header.Get("Hapax-Refusal"), refused.code)
	}
	equal(t, s.database.Number("SELECT count(*) FROM effects"), 0)
	equal(t, s.database.Number("SELECT count(*) FROM hapax.operations"), 0)
	response, err := http.Get(s.URL + "/orders")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	equal(t, response.StatusCode, 200)
}

func TestHowAHandlerEndsIsHowItsTransactionEnds(t *testing.T) {
	var tries atomic.Int32
	s := serve(t, func(s *service, r chi.Router) {
		handle := func(path string, timeout time.Duration, end func(w http.ResponseWriter, r *http.Request)) {
			r.With(s.protect(once.HTTP{Timeout: timeout})).Post(path, func(w http.ResponseWriter, r *http.Request) {
				tries.Add(1)
				if _, err := write(r); err != nil {
					t.Error(err)
				}
				end(w, r)
			})
		}
		handle("/402", 0, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no money", 402) })
		handle("/refused", 0, func(w http.ResponseWriter, r *http.Request) {
			once.Fail(w, r, once.Refuse(&once.Answer{Status: 404, Body: []byte("no such account")}))
		})
		handle("/503", 0, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "later", 503) })
		handle("/failed", 0, func(w http.ResponseWriter, r *http.Request) { once.Fail(w, r, errors.New("out of paper")) })
		handle("/panic", 0, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		handle("/slow", time.Second, func(w http.ResponseWriter, r *http.Request) {
			_, err := oncepgx.Tx(r.Context()).Exec(r.Context(), "SELECT pg_sleep(30)")
			once.Fail(w, r, err)
		})
		handle("/conflict", 0, func(w http.ResponseWriter, r *http.Request) {
			if tries.Load() == 1 {
				_, err := oncepgx.Tx(r.Context()).Exec(r.Context(), "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$")
				w.Header().Set("X-Try", "first")
				once.Fail(w, r, err)
			}
		})
	})
	for _, expected := range []struct {
		path           string
		status, again  int
		tries, effects int
		refusal, body  string
	}{
		{"/402", 402, 402, 1, 0, "", "no money\n"},
		{"/refused", 404, 404, 1, 0, "", "no such account"},
		{"/503", 503, 503, 2, 0, "", "later\n"},
		{"/failed", 500, 500, 2, 0, "", "Internal Server Error\n"},
		{"/slow", 503, 503, 2, 0, "transaction-rolled-back", ""},
		{"/conflict", 200, 200, 2, 1, "", ""},
	} {
		tries.Store(0)
		for _, status := range []int{expected.status, expected.again} {
			said := s.post(t, expected.path, "k", "text/plain", expected.path)
			equal(t, said.status, status)
			equal(t, said.header.Get("Hapax-Refusal"), expected.refusal)
			equal(t, said.header.Get("X-Try"), "")
			if expected.refusal == "" {
				equal(t, said.body, expected.body)
			}
		}
		equal(t, int(tries.Load()), expected.tries)
		equal(t, s.database.Effects(expected.path), expected.effects)
	}
	equal(t, strings.Contains(s.logged.String(), "out of paper"), true)
	request, err := http.NewRequest(http.MethodPost, s.URL+"/panic", strings.NewReader("/panic"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Idempotency-Key", "k")
	if response, err := http.DefaultClient.Do(request); err == nil {
		t.Errorf("a panic is the server's: %v", response.Status)
	}
	equal(t, s.database.Effects("/panic")+s.database.Number("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()"), 0)
}

func TestAClientThatHangsUpStopsNothing(t *testing.T) {
	hungUp, began := make(chan struct{}), make(chan struct{})
	s := serve(t, func(s *service, r chi.Router) {
		r.With(s.protect(once.HTTP{})).Post("/orders", func(w http.ResponseWriter, r *http.Request) {
			close(began)
			<-hungUp
			created(w, r)
		})
	})
	connection, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(connection, "POST /orders HTTP/1.1\r\nHost: shop\r\nContent-Type: text/plain\r\nIdempotency-Key: k-1\r\nContent-Length: 5\r\n\r\napple")
	<-began
	_ = connection.Close()
	// The server notices that nobody is there before the handler goes on.
	time.Sleep(50 * time.Millisecond)
	close(hungUp)
	said := s.post(t, "/orders", "k-1", "text/plain", "apple")
	equal(t, said.status, 201)
	equal(t, said.header.Get("Idempotent-Replayed"), "true")
	equal(t, s.database.Effects("apple"), 1)
}

func TestNothingIsSentBeforeItIsCommitted(t *testing.T) {
	s := serve(t, func(s *service, r chi.Router) {
		r.With(s.protect(once.HTTP{})).Post("/orders", func(w http.ResponseWriter, r *http.Request) {
			created(w, r)
			_ = http.NewResponseController(w).Flush()
		})
	})
	connection, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_, _ = io.WriteString(connection, "POST /orders HTTP/1.1\r\nHost: shop\r\nIdempotency-Key: k-1\r\nContent-Length: 5\r\n\r\nslow!")
	_, err = bufio.NewReader(connection).ReadByte()
	equal(t, err, nil)
	equal(t, s.database.Effects("slow!"), 1)
}

func TestDuplicatesOverHTTPHearTheSameOrThatItIsBusy(t *testing.T) {
	began, go_ := make(chan struct{}), make(chan struct{})
	s := serve(t, func(s *service, r chi.Router) {
		r.With(s.protect(once.HTTP{Wait: -1})).Post("/busy", func(w http.ResponseWriter, r *http.Request) {
			close(began)
			<-go_
			created(w, r)
		})
		r.With(s.protect(once.HTTP{Wait: 10 * time.Second})).Post("/waits", created)
	})
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		defer group.Done()
		equal(t, s.post(t, "/busy", "k", "text/plain", "apple").status, 201)
	}()
	<-began
	busy := s.post(t, "/busy", "k", "text/plain", "apple")
	equal(t, busy.status, 409)
	equal(t, busy.header.Get("Hapax-Refusal"), "key-in-flight")
	equal(t, busy.header.Get("Retry-After"), "1")
	close(go_)
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			equal(t, s.post(t, "/waits", "k", "text/plain", "pear").body, "created pear\n")
		}()
	}
	group.Wait()
	equal(t, s.database.Effects("apple"), 1)
	equal(t, s.database.Effects("pear"), 1)
}

func TestADatabaseThatIsAwayIsToldAsSuch(t *testing.T) {
	database := testdb.New(t)
	proxy := testdb.NewProxy(t, database)
	s := serveBy(t, database, database.By(proxy.Address()), func(s *service, r chi.Router) {
		r.With(s.protect(once.HTTP{Timeout: 3 * time.Second})).Post("/orders", created)
	})
	equal(t, s.post(t, "/orders", "k-1", "text/plain", "apple").status, 201)
	proxy.Cut(testdb.Behind, true)
	lost := s.post(t, "/orders", "k-2", "text/plain", "pear")
	equal(t, lost.status, 503)
	equal(t, lost.header.Get("Hapax-Refusal"), "outcome-not-recorded")
	equal(t, s.database.Effects("pear"), 1)
	away := s.post(t, "/orders", "k-3", "text/plain", "plum")
	equal(t, away.status, 503)
	equal(t, away.header.Get("Hapax-Refusal"), "store-unavailable")
	equal(t, away.header.Get("Retry-After"), "1")
}

func TestATransactionThatIsNotThereIsAMistakeOfTheService(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it is told")
		}
	}()
	oncepgx.Tx(context.Background())
}
