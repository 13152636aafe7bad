package client

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hapax.dev/once"
)

// What came of an attempt.
type result int

const (
	notSent     result = iota // no address, no connection
	unanswered                // sent, and no complete answer
	nothingRan                // the other side says that nothing happened
	inFlight                  // an earlier attempt is at work
	keyReused                 // the key belongs to another request
	doubtful                  // the other side does not know whether it happened
	notRetained               // it happened, and its answer was not kept
	goneByNow                 // it happened, and its answer is no longer kept
	success                   // it happened
	notNow                    // not now, and nothing happened
	refused                   // no
	failed                    // something went wrong over there
)

// What to do about it, where another attempt is harmless.
type verdict int

const (
	settled verdict = iota // there is nothing more to hear
	retry
	wait
)

// refusals are those of Hapax that say more than their status.
var refusals = map[string]result{
	"key-in-flight":           inFlight,
	"key-reused":              keyReused,
	"outcome-in-doubt":        doubtful,
	"response-not-retained":   notRetained,
	"key-gone":                goneByNow,
	"first-sent-too-old":      goneByNow,
	"body-incomplete":         nothingRan,
	"caller-unverifiable":     nothingRan,
	"deadline-passed":         nothingRan,
	"execution-not-started":   nothingRan,
	"overloaded":              nothingRan,
	"shutting-down":           nothingRan,
	"store-quarantined":       nothingRan,
	"store-unavailable":       nothingRan,
	"stored-by-newer-version": nothingRan,
	"transaction-rolled-back": nothingRan,
}

// A reading is what an answer says: one of ours, Stripe's, anybody's.
type reading struct {
	result result
	status int
	// What its client is asked to wait.
	told time.Duration
	// Whether it is the kept answer of an earlier attempt.
	replayed bool
	// Whether whoever answered had looked at the key.
	knowsKey bool
	// What Stripe-Should-Retry says; empty if nothing.
	shouldRetry string
}

func read(response *http.Response, body []byte, key string) reading {
	header := response.Header
	r := reading{status: response.StatusCode, result: ofStatus(response.StatusCode)}
	r.replayed = strings.EqualFold(header.Get("Idempotent-Replayed"), "true")
	echoed, _ := once.ParseKey(header.Values("Idempotency-Key"))
	r.knowsKey = r.replayed || key != "" && echoed == key || header.Get("Idempotency-Expires") != ""
	if response.StatusCode < http.StatusMultipleChoices {
		return r
	}
	if result, ours := refusals[code(header, body)]; ours {
		r.result = result
	}
	asked := false
	r.told, asked = retryAfter(header, time.Now())
	r.shouldRetry = strings.ToLower(header.Get("Stripe-Should-Retry"))
	// Stripe, and others like it, have no code for a key in flight.
	conflicts := r.status == http.StatusConflict && r.result == refused
	if conflicts && key != "" && (asked || r.shouldRetry == "true") {
		r.result = inFlight
	}
	return r
}

func (r *reading) verdict() verdict {
	v := settled
	switch r.result {
	case notSent, unanswered, nothingRan, notNow, failed:
		v = retry
	case inFlight:
		v = wait
	}
	saysNo := r.result == keyReused || r.result == notRetained || r.result == goneByNow || r.result == refused
	switch {
	case r.shouldRetry == "false":
		return settled
	// What is kept under the key will be said again, however often it is asked for.
	case v == retry && r.replayed:
		return settled
	case saysNo && r.shouldRetry == "true" && !r.replayed:
		return retry
	}
	return v
}

func ofStatus(status int) result {
	switch {
	case begunSuccess(status) != 0 || status == http.StatusAccepted:
		return success
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests:
		return notNow
	case status >= 300 && status < 500 || status == http.StatusNotImplemented || status == http.StatusHTTPVersionNotSupported:
		return refused
	default:
		return failed
	}
}

// begunSuccess is the status of a success that breaks off, if it is the last word; zero if it is not: what
// follows "taken on, not yet done" need not be the same.
func begunSuccess(status int) int {
	isSuccess := status >= 200 && status < 300 || status == http.StatusSeeOther || status == http.StatusNotModified
	if !isSuccess || status == http.StatusAccepted {
		return 0
	}
	return status
}

// code is that of a refusal of ours, by its mark or by its document.
func code(header http.Header, body []byte) string {
	if kind := strings.ToLower(header.Get("Content-Type")); !strings.HasPrefix(kind, "application/problem+json") {
		return ""
	}
	if marked := header.Get("Hapax-Refusal"); marked != "" {
		return marked
	}
	var document struct{ Type, Code string }
	if json.Unmarshal(body, &document) != nil || !strings.HasSuffix(document.Type, "/"+document.Code) {
		return ""
	}
	return document.Code
}

// retryAfter is what its client is asked to wait. A date is read against the Date of the answer itself, so
// that the two clocks need not agree.
func retryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		now = date
	}
	return max(until.Sub(now), 0), true
}
