package main

import (
	"log"
	"net"
	"net/http"

	"hapax.dev/once"
)

// serve serves the payments API of sdk/conformance.md with net/http, as long as the process lives.
func (a *agent[T, Q]) serve() any {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return told(nil, err)
	}
	options := once.HTTP{
		Tenant: func(r *http.Request) string { return r.Header.Get("Tenant") },
		Ignore: []string{"/sent_at"},
	}
	mux := http.NewServeMux()
	mux.Handle("POST /payments", a.db.Handler(options, a.pay))
	go func() { log.Fatal(http.Serve(listener, mux)) }()
	return map[string]int{"port": listener.Addr().(*net.TCPAddr).Port}
}

func (a *agent[T, Q]) pay(w http.ResponseWriter, r *http.Request, tx T) error {
	var asked struct {
		Order string
		Cents int
	}
	if err := once.ReadJSON(r, &asked); err != nil {
		return err
	}
	if err := a.exec(r.Context(), a.as(tx), insert, asked.Order); err != nil {
		return err
	}
	if asked.Cents == 0 {
		http.Error(w, "no money", http.StatusPaymentRequired)
		return nil
	}
	http.SetCookie(w, &http.Cookie{Name: "session", Value: "secret"})
	w.Header().Set("X-Paid", "yes")
	return once.WriteJSON(w, http.StatusCreated, map[string]any{"paid": asked.Order, "cents": asked.Cents})
}
