package main

import (
	"errors"
	"strings"

	"hapax.dev/once"
)

var kinds = map[error]string{
	once.ErrBusy:               "busy",
	once.ErrMismatch:           "mismatch",
	once.ErrInDoubt:            "in_doubt",
	once.ErrGone:               "gone",
	once.ErrNotRetained:        "not_retained",
	once.ErrConflict:           "conflict",
	once.ErrOutcomeUnknown:     "outcome_unknown",
	once.ErrUnavailable:        "unavailable",
	once.ErrSchemaMissing:      "schema_missing",
	once.ErrSchemaVersion:      "schema_version",
	once.ErrNotInTransaction:   "not_in_a_transaction",
	once.ErrTransactionAborted: "transaction_aborted",
	once.ErrBegunAlready:       "begun_already",
	once.ErrNested:             "nested",
	once.ErrStatementPooling:   "statement_pooling",
	once.ErrInvalid:            "invalid",
	once.ErrNotPermitted:       "not_permitted",
	once.ErrDamaged:            "damaged",
	once.ErrNewer:              "newer",
}

// told is what once or within said.
func told(said *once.Answer, err error) any {
	if err != nil {
		return failed(kindOf(err), err)
	}
	headers := make(map[string]any, len(said.Header))
	for name, values := range said.Header {
		name = strings.ToLower(name)
		if headers[name] = values; len(values) == 1 {
			headers[name] = values[0]
		}
	}
	return map[string]any{"answer": map[string]any{
		"status": said.Status, "headers": headers, "body": string(said.Body), "replayed": said.Replayed,
	}}
}

func failed(kind string, err error) any {
	told := map[string]any{"kind": kind, "message": err.Error(), "retry_after": nil, "differs": nil}
	if busy := (*once.BusyError)(nil); errors.As(err, &busy) {
		told["retry_after"] = busy.RetryAfter.Seconds()
	}
	if mismatch := (*once.MismatchError)(nil); errors.As(err, &mismatch) {
		told["differs"] = mismatch.Differs
	}
	return map[string]any{"error": told}
}

func kindOf(err error) string {
	if own := raised(""); errors.As(err, &own) {
		return "raised"
	}
	for kind, word := range kinds {
		if errors.Is(err, kind) {
			return word
		}
	}
	return "other"
}
