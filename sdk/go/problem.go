package once

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// A problem is a refusal as a document of RFC 9457.
type problem struct {
	code       string
	detail     string
	retryAfter time.Duration
	differs    []string
}

// What this middleware refuses with: the status and the title that belong to each code.
var refusals = map[string]struct {
	status int
	title  string
}{
	"key-missing":             {400, "The request has no idempotency key"},
	"key-malformed":           {400, "The idempotency key is malformed"},
	"key-empty":               {400, "The idempotency key is empty"},
	"key-too-long":            {400, "The idempotency key is too long"},
	"key-repeated":            {400, "The idempotency key was sent more than once"},
	"key-reused":              {422, "The idempotency key was used for another request"},
	"key-in-flight":           {409, "A request with this idempotency key is in progress"},
	"key-gone":                {410, "The idempotency key is past its retention"},
	"credential-missing":      {401, "The request has no credential"},
	"scope-unusable":          {400, "The path cannot name an operation"},
	"body-too-large":          {413, "The request is too large"},
	"body-incomplete":         {400, "The request ended early"},
	"outcome-in-doubt":        {409, "Nobody knows whether the operation happened"},
	"outcome-not-recorded":    {503, "The outcome could not be recorded"},
	"response-not-retained":   {409, "The operation was done and its response was not kept"},
	"stored-response-corrupt": {500, "The stored response is damaged"},
	"stored-by-newer-version": {503, "The stored record was written by a newer version"},
	"store-unavailable":       {503, "The store cannot be asked"},
	"transaction-rolled-back": {503, "The operation was rolled back"},
}

// problemOf is what a client hears of an error; nil if that is none of its business.
func problemOf(err error) *problem {
	var key *KeyError
	var busy *BusyError
	var mismatch *MismatchError
	var notRetained *NotRetainedError
	const again, rolledBack = "Nothing was run. Ask again.", "Nothing of it was kept. Ask again with the same key."
	switch {
	case errors.As(err, &key):
		return &problem{code: key.Code, detail: key.Detail}
	case errors.As(err, &busy):
		detail := "The first request with this key is still being worked on. Ask again later."
		return &problem{code: "key-in-flight", detail: detail, retryAfter: busy.RetryAfter}
	case errors.As(err, &mismatch):
		return &problem{code: "key-reused", detail: "Use a new key for a new request.", differs: mismatch.Differs}
	case errors.As(err, &notRetained):
		detail := "It was answered with " + strconv.Itoa(notRetained.Status) + "; the body was not kept."
		return &problem{code: "response-not-retained", detail: detail}
	case errors.Is(err, ErrInDoubt):
		detail := "An attempt ended without an answer. It is not repeated until somebody has found out whether it happened."
		return &problem{code: "outcome-in-doubt", detail: detail}
	case errors.Is(err, ErrGone):
		return &problem{code: "key-gone", detail: "The key was used, and its answer is no longer kept."}
	case errors.Is(err, ErrDamaged):
		return &problem{code: "stored-response-corrupt", detail: "It was not served, and nothing was run."}
	case errors.Is(err, ErrNewer):
		return &problem{code: "stored-by-newer-version", detail: again, retryAfter: 5 * time.Second}
	case errors.Is(err, ErrOutcomeUnknown):
		detail := "The request may have been carried out. Ask again with the same key."
		return &problem{code: "outcome-not-recorded", detail: detail, retryAfter: time.Second}
	case errors.Is(err, ErrConflict), errors.Is(err, context.DeadlineExceeded):
		return &problem{code: "transaction-rolled-back", detail: rolledBack, retryAfter: time.Second}
	case errors.Is(err, ErrUnavailable), sqlState(err) != "" && kindOf(err) == ErrUnavailable:
		return &problem{code: "store-unavailable", detail: again, retryAfter: time.Second}
	}
	return nil
}

func (p *problem) write(w http.ResponseWriter) {
	refusal, page := refusals[p.code], "/.well-known/idempotency/errors/"+p.code
	document := struct {
		Type    string   `json:"type"`
		Title   string   `json:"title"`
		Status  int      `json:"status"`
		Detail  string   `json:"detail"`
		Code    string   `json:"code"`
		Differs []string `json:"differs,omitempty"`
	}{page, refusal.title, refusal.status, p.detail, p.code, p.differs}
	// Texts have a spelling in JSON.
	body, _ := json.Marshal(document)
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Content-Language", "en")
	header.Set("Cache-Control", "no-store")
	header.Set("Hapax-Refusal", p.code)
	header.Set("Link", "<"+page+`>; rel="describedby"`)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if p.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int((p.retryAfter+time.Second-1)/time.Second)))
	}
	w.WriteHeader(refusal.status)
	_, _ = w.Write(body)
}
