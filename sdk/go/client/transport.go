// Package client sends requests until it is known what came of them: one Idempotency-Key for all attempts
// of a request, and another attempt only where that is harmless.
//
//	response, err := client.New().Post(url, "application/json", body)
//	tried := client.Tried(response, err)
//	switch tried.Conclusion { … }
package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hapax.dev/once"
)

// A Transport is an [http.RoundTripper] that repeats requests. Its zero value is ready to use. Let its
// [http.Client] follow no redirects, as [New] does: they would send the key to somebody else.
type Transport struct {
	// Base sends each attempt; [http.DefaultTransport] if nothing is said.
	Base http.RoundTripper
	// Attempts is how often a request is tried; 5 if nothing is said.
	Attempts int
	// Deadline is how long all attempts may take together; 60 s if nothing is said.
	Deadline time.Duration
	// AttemptTimeout is how long one attempt may take; 10 s if nothing is said.
	AttemptTimeout time.Duration
	// Pause is what pauses begin with, and double from; 100 ms if nothing is said.
	Pause time.Duration
	// OnlyGivenKeys adds no keys: what has none and is not idempotent is sent exactly once.
	OnlyGivenKeys bool

	budget budget
}

// New is a client with a [Transport].
func New() *http.Client {
	return &http.Client{
		Transport:     &Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

const (
	requestBytesMax = 1 << 20
	answerBytesMax  = 16 << 20
	pauseMax        = 20 * time.Second
	retryAfterMax   = 5 * time.Minute
	timeMin         = time.Millisecond
)

// RoundTrip sends a request as often as it is worth it. An answer is returned whatever it says, as is usual;
// without one the error is an [*Error]. What it came to is told by [Tried] in either case.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	call, err := t.prepare(request)
	if err != nil {
		return nil, err
	}
	for {
		ended := call.attempt()
		call.history.note(ended)
		pause, again := call.next(ended)
		if !again || sleep(request.Context(), pause) != nil {
			return call.end(ended)
		}
		if ended.response != nil {
			_ = ended.response.Body.Close()
		}
	}
}

// A call is a request on its way through its attempts.
type call struct {
	transport *Transport
	request   *http.Request
	key       string
	body      []byte
	repeats   bool
	deadline  time.Time
	history   history
	sent      int
	failures  int
}

func (t *Transport) prepare(request *http.Request) (*call, error) {
	c := &call{transport: t, request: request.Clone(request.Context())}
	c.deadline = time.Now().Add(cmp.Or(t.Deadline, 60*time.Second))
	if c.request.Header == nil {
		c.request.Header = make(http.Header)
	}
	header := c.request.Header
	lines := header.Values("Idempotency-Key")
	if len(lines) == 0 && !t.OnlyGivenKeys && !isIdempotent(request.Method) {
		lines = []string{once.FormatKey(once.NewKey())}
		header["Idempotency-Key"] = lines
	}
	if len(lines) > 1 {
		return nil, c.unsent(errors.New("there is more than one Idempotency-Key"))
	}
	if len(lines) == 1 {
		// Whether it is a key is for the server to say.
		if c.key, _ = once.ParseKey(lines); c.key == "" {
			c.key = lines[0]
		}
	}
	if left := header.Get("Hapax-Deadline"); left != "" {
		millis, err := strconv.ParseUint(left, 10, 40)
		if err != nil {
			return nil, c.unsent(fmt.Errorf("Hapax-Deadline is not a time in milliseconds: %q", left))
		}
		c.deadline = earlier(c.deadline, time.Now().Add(time.Duration(millis)*time.Millisecond))
	}
	if until, set := request.Context().Deadline(); set {
		c.deadline = earlier(c.deadline, until)
	}
	harmless := c.key != "" || isIdempotent(request.Method)
	c.repeats = harmless && !strings.EqualFold(header.Get("Hapax-Retry"), "never")
	header.Set("Hapax-Retry", "never")
	c.history.reads = isSafe(request.Method)
	t.budget.deposit()
	return c, c.readBody()
}

// readBody keeps the body of a request that may be sent again.
func (c *call) readBody() error {
	if !c.repeats || c.request.Body == nil || c.request.Body == http.NoBody {
		return nil
	}
	defer c.request.Body.Close()
	body, err := io.ReadAll(io.LimitReader(c.request.Body, requestBytesMax+1))
	switch {
	case err != nil:
		return c.unsent(err)
	case len(body) > requestBytesMax:
		return c.unsent(fmt.Errorf("its body is larger than the %d bytes that are kept to send it again", requestBytesMax))
	}
	c.body, c.request.ContentLength = body, int64(len(body))
	return nil
}

func (c *call) unsent(err error) error {
	if c.request.Body != nil {
		_ = c.request.Body.Close()
	}
	return &Error{Report: Report{Key: c.key, Conclusion: GaveUp}, Err: err}
}

// next is the pause before the next attempt, if there is one.
func (c *call) next(ended *attempt) (time.Duration, bool) {
	if !c.repeats || c.request.Context().Err() != nil {
		return 0, false
	}
	base := cmp.Or(c.transport.Pause, 100*time.Millisecond)
	told := min(ended.told, retryAfterMax)
	var pause time.Duration
	switch ended.verdict() {
	case retry:
		if c.failures++; c.failures >= cmp.Or(c.transport.Attempts, 5) {
			return 0, false
		}
		pause = rand.N(min(base<<min(c.failures-1, 20), pauseMax))
	case wait:
		pause = base + rand.N(base)
	default:
		return 0, false
	}
	if told > 0 {
		// Never earlier than asked for, and those who were asked at the same time not together.
		pause = max(pause, told+rand.N(max(told/4, base)))
	}
	if time.Until(c.deadline) <= pause+timeMin {
		return 0, false
	}
	return pause, ended.verdict() == wait || c.transport.budget.withdraw()
}

// end is the last answer, or why there is none, with what it all came to.
func (c *call) end(last *attempt) (*http.Response, error) {
	report := Report{Key: c.key, Attempts: c.sent, Replayed: last.replayed, Conclusion: c.history.conclusion()}
	if last.response == nil {
		return nil, &Error{Report: report, Err: last.err}
	}
	reported := context.WithValue(c.request.Context(), reportKey{}, report)
	last.response.Request = c.request.WithContext(reported)
	return last.response, nil
}

// outgoing is the request of the next attempt, which says how long its sender still waits.
func (c *call) outgoing(ctx context.Context, left time.Duration) *http.Request {
	request := c.request.Clone(ctx)
	if c.body != nil {
		request.Body = io.NopCloser(bytes.NewReader(c.body))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
	}
	request.Header.Set("Hapax-Deadline", strconv.FormatInt(left.Milliseconds(), 10))
	return request
}

func isSafe(method string) bool {
	switch cmp.Or(method, http.MethodGet) {
	case "GET", "HEAD", "OPTIONS", "TRACE":
		return true
	}
	return false
}

func isIdempotent(method string) bool {
	return isSafe(method) || method == http.MethodPut || method == http.MethodDelete
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
