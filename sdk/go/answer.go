package once

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// An Answer is what an operation says: stored with its effect, and said again to every later call.
type Answer struct {
	// Status is that of HTTP, whether or not the answer goes that way; zero is 200.
	Status int
	Header http.Header
	Body   []byte

	// Replayed says that this is the stored answer of an earlier call.
	Replayed bool
	// Expires is until when the answer is kept; zero if it is not.
	Expires time.Time
}

// JSON is an answer with this value as its body.
//
//	return once.JSON(http.StatusCreated, receipt)
func JSON(status int, value any) (*Answer, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return &Answer{Status: status, Header: header, Body: append(body, '\n')}, nil
}

// Refuse is the error that work returns if it failed for good: its writes are taken back, and every call
// is answered with this. The status is 400 or above.
func Refuse(answer *Answer) error {
	return &RefusedError{Answer: answer}
}

// A RefusedError is what [Refuse] makes.
type RefusedError struct {
	Answer *Answer
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused for good with %d", e.Answer.fresh().Status)
}

const (
	bodyMax   = 16 << 20
	statusMin = 100
	statusMax = 599
)

// fresh is the answer as work gives it, with what may be left out.
func (a *Answer) fresh() *Answer {
	said := Answer{Status: http.StatusOK}
	if a != nil {
		said.Header, said.Body = a.Header, a.Body
		said.Status = cmp.Or(a.Status, said.Status)
	}
	return &said
}

func (a *Answer) check() error {
	if a.Status < statusMin || a.Status > statusMax {
		return fmt.Errorf("%w: the status of an answer is %d to %d, not %d", ErrInvalid, statusMin, statusMax, a.Status)
	}
	if len(a.Body) > bodyMax {
		return fmt.Errorf("%w: a body of more than 16 MiB cannot be kept: store it elsewhere, and answer with a reference", ErrInvalid)
	}
	return nil
}

// An ending is how the transaction ends whose work gave an answer.
type ending int

const (
	finish   ending = iota // it is stored, with what was written
	fail                   // it is stored, and what was written is taken back
	rollback               // nothing is stored: another try may succeed
)

func endingOf(status int) ending {
	switch {
	case status < http.StatusBadRequest:
		return finish
	case status >= http.StatusInternalServerError:
		return rollback
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout,
		http.StatusRequestEntityTooLarge, http.StatusTooEarly, http.StatusTooManyRequests:
		return rollback
	}
	return fail
}

// storedHeader spells a header as it is stored: a list of texts for each name, or the text if there is one.
func storedHeader(header http.Header) (string, error) {
	out := []byte{'{'}
	for name, values := range header {
		if len(values) == 0 {
			continue
		}
		out = append(appendString(appendComma(out, len(out) > 1), strings.ToLower(name)), ':')
		if len(values) > 1 {
			out = append(out, '[')
		}
		for i, value := range values {
			if !utf8.ValidString(value) {
				return "", fmt.Errorf("%w: the header %s is not UTF-8", ErrInvalid, name)
			}
			out = appendString(appendComma(out, i > 0), value)
		}
		if len(values) > 1 {
			out = append(out, ']')
		}
	}
	return string(append(out, '}')), nil
}

func readHeader(text string) (http.Header, error) {
	var stored map[string]any
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, err
	}
	header := make(http.Header, len(stored))
	for name, value := range stored {
		switch value := value.(type) {
		case string:
			header.Add(name, value)
		case []any:
			for _, value := range value {
				header.Add(name, fmt.Sprint(value))
			}
		}
	}
	return header, nil
}
