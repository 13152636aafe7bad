package once

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Handler is [DB.Middleware] around one function that has the transaction as an argument, and returns what
// it failed with: [Fail] is told of that.
//
//	http.Handle("POST /payments", db.Handler(once.HTTP{Tenant: tenantOf}, pay))
//
//	func pay(w http.ResponseWriter, r *http.Request, tx pgx.Tx) error { … }
//
// It is for methods that change something: to a safe one no transaction belongs, and it answers 405.
func (db *DB[T, Q]) Handler(options HTTP, handle func(w http.ResponseWriter, r *http.Request, tx T) error) http.Handler {
	return db.Middleware(options)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx, found := r.Context().Value(txKey{}).(T)
		if !found {
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		if err := handle(w, r, tx); err != nil {
			Fail(w, r, err)
		}
	}))
}

// ReadJSON reads the body of a request into value. What is not JSON of that shape is refused with 400, if
// the handler returns the error.
func ReadJSON(r *http.Request, value any) error {
	if err := json.NewDecoder(r.Body).Decode(value); err != nil {
		text := fmt.Sprintf("The body cannot be read: %v\n", err)
		header := http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
		return Refuse(&Answer{Status: http.StatusBadRequest, Header: header, Body: []byte(text)})
	}
	return nil
}

// WriteJSON answers with value as the body.
func WriteJSON(w http.ResponseWriter, status int, value any) error {
	answer, err := JSON(status, value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(status)
	_, err = w.Write(answer.Body)
	return err
}
