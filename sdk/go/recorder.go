package once

import (
	"bytes"
	"maps"
	"net/http"
	"strconv"
)

// A recorder keeps what a handler answers until it is committed.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
	// The header as it was when the answer began.
	sent http.Header
	// What the handler failed with, if it said so with Fail.
	failure error
}

type recorderKey struct{}

func newRecorder() *recorder {
	return &recorder{header: make(http.Header)}
}

func (rec *recorder) Header() http.Header { return rec.header }

func (rec *recorder) WriteHeader(status int) {
	// What is only informational is for a client that waits, and this one hears nothing before the end.
	if rec.sent == nil && status >= http.StatusOK {
		rec.status = status
		rec.sent = rec.header.Clone()
	}
}

func (rec *recorder) Write(part []byte) (int, error) {
	rec.WriteHeader(http.StatusOK)
	if rec.status == http.StatusNoContent || rec.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	return rec.body.Write(part)
}

// Flush does nothing: what is not committed is not sent. Frameworks expect that it can be called.
func (rec *recorder) Flush() {}

// Headers of one connection, of one answer and of one person.
var notStored = []string{"Connection", "Keep-Alive", "Transfer-Encoding", "Date", "Set-Cookie"}

func (rec *recorder) answer() *Answer {
	rec.WriteHeader(http.StatusOK)
	// The server would say so too, and those who replay in other languages would not.
	if _, said := rec.sent["Content-Type"]; !said && rec.body.Len() > 0 {
		rec.sent.Set("Content-Type", http.DetectContentType(rec.body.Bytes()))
	}
	stored := rec.sent.Clone()
	for _, name := range notStored {
		stored.Del(name)
	}
	return &Answer{Status: rec.status, Header: stored, Body: rec.body.Bytes()}
}

// write sends an answer with this header.
func (a *Answer) write(w http.ResponseWriter, header http.Header) {
	maps.Copy(w.Header(), header)
	if a.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if !a.Expires.IsZero() {
		w.Header().Set("Idempotency-Expires", a.Expires.UTC().Format(http.TimeFormat))
	}
	if len(a.Body) > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}
