package client

import (
	"errors"
	"fmt"
	"net/http"
)

// A Conclusion is what a request came to, in one word.
type Conclusion string

const (
	// Done: it happened, once.
	Done Conclusion = "done"
	// Refused: the other side said no, and it did not happen.
	Refused Conclusion = "refused"
	// Unknown: it may have happened, and nobody said. Send it again with the same key.
	Unknown Conclusion = "unknown"
	// GaveUp: it did not happen. Nothing was sent, or every answer said that nothing ran.
	GaveUp Conclusion = "gave up"
)

// A Report says what was tried.
type Report struct {
	// Key is the one that was sent with every attempt.
	Key string
	// Attempts is how often the request was sent, asking after an attempt in flight included.
	Attempts int
	// Replayed says that the answer is that of an earlier attempt, kept by the server.
	Replayed   bool
	Conclusion Conclusion
}

type reportKey struct{}

// Tried is the report of a request that a [Transport] has sent, from what the client returned. It is empty
// for any other.
func Tried(response *http.Response, err error) Report {
	var failed *Error
	if errors.As(err, &failed) {
		return failed.Report
	}
	if response == nil || response.Request == nil {
		return Report{}
	}
	report, _ := response.Request.Context().Value(reportKey{}).(Report)
	return report
}

// An Error is why there is no answer: what was tried, and what the last attempt failed with.
type Error struct {
	Report
	Err error
}

func (e *Error) Error() string {
	if e.Conclusion == Unknown {
		return fmt.Sprintf("it may have happened: no answer in %d attempts: %v", e.Attempts, e.Err)
	}
	return fmt.Sprintf("nothing happened: gave up after %d attempts: %v", e.Attempts, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }
