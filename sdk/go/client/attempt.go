package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// An attempt is what came of sending a request once.
type attempt struct {
	reading
	// The status of a success that began and broke off.
	cut      int
	response *http.Response
	err      error
}

var errTimedOut = errors.New("there was no complete answer in time")

func (c *call) attempt() *attempt {
	t := c.transport
	left := min(time.Until(c.deadline), cmp.Or(t.AttemptTimeout, 10*time.Second))
	if left < timeMin {
		return &attempt{reading: reading{result: notSent}, err: context.DeadlineExceeded}
	}
	c.sent++
	ctx, cancel := context.WithCancelCause(c.request.Context())
	timer := time.AfterFunc(left, func() { cancel(errTimedOut) })
	line := &line{}
	base := cmp.Or[http.RoundTripper](t.Base, http.DefaultTransport)
	response, err := base.RoundTrip(c.outgoing(line.traced(ctx), left))
	if err != nil {
		timer.Stop()
		cancel(nil)
		return c.failed(ctx, line, err)
	}
	whole, err := c.receive(response)
	if err != nil {
		timer.Stop()
		cancel(nil)
		ended := c.failed(ctx, line, err)
		ended.cut = begunSuccess(response.StatusCode)
		return ended
	}
	if timer.Stop(); whole != nil {
		cancel(nil)
	} else {
		response.Body = &closing{response.Body, func() { cancel(nil) }}
	}
	return &attempt{reading: read(response, whole, c.key), response: response}
}

// receive reads an answer whole, so that one that is cut short counts as none. A success of a request that
// only reads, and what is too large, is handed on as it comes.
func (c *call) receive(response *http.Response) ([]byte, error) {
	if c.history.reads && response.StatusCode < http.StatusMultipleChoices {
		return nil, nil
	}
	whole, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax+1))
	switch {
	case err != nil:
		_ = response.Body.Close()
		return nil, err
	case len(whole) > answerBytesMax:
		rest := response.Body
		response.Body = &closing{io.MultiReader(bytes.NewReader(whole), rest), func() { _ = rest.Close() }}
		return nil, nil
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(whole))
	return whole, nil
}

func (c *call) failed(ctx context.Context, line *line, err error) *attempt {
	if cause := context.Cause(ctx); errors.Is(cause, errTimedOut) {
		err = cause
	}
	result := unanswered
	if line.nothingSent(err) {
		result = notSent
	}
	return &attempt{reading: reading{result: result}, err: err}
}

// A line knows whether a connection was had: without one, nothing was sent.
type line struct{ wanted, had atomic.Bool }

func (l *line) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { l.wanted.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { l.had.Store(true) },
	})
}

func (l *line) nothingSent(err error) bool {
	var dial *net.OpError
	return l.wanted.Load() && !l.had.Load() || errors.As(err, &dial) && dial.Op == "dial"
}

// closing does something more when a body is closed.
type closing struct {
	io.Reader
	close func()
}

func (c *closing) Close() error {
	if body, ok := c.Reader.(io.Closer); ok {
		_ = body.Close()
	}
	c.close()
	return nil
}
