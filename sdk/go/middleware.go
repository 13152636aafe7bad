package once

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// HTTP is how [DB.Middleware] protects a handler.
type HTTP struct {
	// Tenant says who the caller has proved to be; nothing if that is not known. It has no default:
	// [OneTenant] is for services that do not tell their callers apart.
	Tenant func(*http.Request) string
	// Ignore names members of JSON bodies, by JSON pointers, that do not tell two requests apart.
	Ignore []string
	// BodyMax is how many bytes of a request are read; 1 MiB if nothing is said.
	BodyMax int64
	// Timeout is how long a request may take, whether or not its client still waits; 30 s if nothing is said.
	Timeout time.Duration
	// Retention, Tombstone, Wait and Isolation are those of an [Operation].
	Retention time.Duration
	Tombstone time.Duration
	Wait      time.Duration
	Isolation sql.IsolationLevel
	// Log hears of what the client is not told; [slog.Default] if nothing is said.
	Log *slog.Logger
}

// OneTenant is one tenant for all callers: their keys are not told apart.
func OneTenant(name string) func(*http.Request) string {
	return func(*http.Request) string { return name }
}

const (
	usualBodyMax = 1 << 20
	usualTimeout = 30 * time.Second
)

// Middleware runs a handler once for each Idempotency-Key, in a transaction that the handler finds in the
// context of its request, with Tx of its adapter. What the handler writes to the database and what it answers are one
// commit, and the answer is sent after it. A client that hangs up does not stop the handler.
//
// Methods that promise to change nothing (GET, HEAD, OPTIONS and the like) pass.
func (db *DB[T, Q]) Middleware(options HTTP) func(http.Handler) http.Handler {
	if options.Tenant == nil {
		panic("once: HTTP.Tenant says who the caller is; if all are one, let it be once.OneTenant")
	}
	options.BodyMax = cmp.Or(options.BodyMax, usualBodyMax)
	options.Timeout = cmp.Or(options.Timeout, usualTimeout)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isSafe(r.Method) {
				next.ServeHTTP(w, r)
				return
			}
			op, body, refused := options.read(w, r)
			if refused != nil {
				refused.write(w)
				return
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), options.Timeout)
			defer cancel()
			var rec *recorder
			answer, err := db.Once(ctx, *op, func(ctx context.Context, tx T) (*Answer, error) {
				rec = newRecorder()
				ctx = context.WithValue(context.WithValue(ctx, txKey{}, tx), recorderKey{}, rec)
				attempt := r.WithContext(ctx)
				attempt.Body = io.NopCloser(bytes.NewReader(body))
				next.ServeHTTP(rec, attempt)
				return rec.answer(), rec.failure
			})
			switch {
			case err != nil:
				options.refuse(w, r, err)
			case answer.Replayed, rec.failure != nil:
				answer.write(w, answer.Header)
			default:
				answer.write(w, rec.sent)
			}
		})
	}
}

// Tx is the transaction of the request that a handler serves. Adapters have a Tx of their own type.
func Tx[T any](ctx context.Context) T {
	tx, found := ctx.Value(txKey{}).(T)
	if !found {
		panic(fmt.Sprintf("once: there is no %T in this context: is the route behind Middleware, and the method not a safe one?", *new(T)))
	}
	return tx
}

type txKey struct{}

// Fail ends a handler that failed with an error, in place of an answer of its own: everything is rolled
// back. If other transactions were in the way, the handler is run again; if the error is [Refuse], that is
// stored and answered; anything else is answered with 500, and logged.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	if rec, found := r.Context().Value(recorderKey{}).(*recorder); found {
		rec.failure = err
		return
	}
	answer500(w, r, slog.Default(), err)
}

// read is what a request asks for, and its body; or why it is refused.
func (options *HTTP) read(w http.ResponseWriter, r *http.Request) (*Operation, []byte, *problem) {
	tenant := options.Tenant(r)
	if tenant == "" {
		return nil, nil, &problem{code: "credential-missing", detail: "It is not known who asks."}
	}
	key, err := ParseKey(r.Header.Values("Idempotency-Key"))
	if err != nil {
		return nil, nil, problemOf(err)
	}
	path, query := target(r)
	scope := r.Method + " " + path
	if !isName(scope, scopeMax) {
		detail := "A path has visible ASCII characters alone, and is not that long."
		return nil, nil, &problem{code: "scope-unusable", detail: detail}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, options.BodyMax))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		detail := fmt.Sprintf("A request has at most %d bytes.", options.BodyMax)
		return nil, nil, &problem{code: "body-too-large", detail: detail}
	case err != nil:
		return nil, nil, &problem{code: "body-incomplete", detail: "The body ended before it was complete."}
	}
	return &Operation{
		Tenant: tenant, Scope: scope, Key: key,
		Request: options.compared(r, body), Method: r.Method, Path: path, Query: query,
		Retention: options.Retention, Tombstone: options.Tombstone, Wait: options.Wait, Isolation: options.Isolation,
	}, body, nil
}

// compared is what makes two bodies the same: JSON by its value, everything else byte by byte.
func (options *HTTP) compared(r *http.Request, body []byte) []byte {
	if isJSON(r.Header.Get("Content-Type")) {
		if spelled, err := CanonicalJSON(body, options.Ignore...); err == nil {
			return spelled
		}
	}
	return body
}

func isJSON(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}

// refuse tells the client what it is told of an error, and the log the rest.
func (options *HTTP) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if refused := problemOf(err); refused != nil {
		refused.write(w)
		return
	}
	answer500(w, r, cmp.Or(options.Log, slog.Default()), err)
}

func answer500(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	log.ErrorContext(r.Context(), "the request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
}

// target is the path and the query as the client sent them, whichever routers have looked at them since.
func target(r *http.Request) (path, query string) {
	if strings.HasPrefix(r.RequestURI, "/") {
		path, query, _ = strings.Cut(r.RequestURI, "?")
		return path, query
	}
	return r.URL.EscapedPath(), r.URL.RawQuery
}

func isSafe(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH":
		return true
	}
	return false
}
