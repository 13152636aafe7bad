package once_test

import (
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"

	"hapax.dev/once"
)

func TestAFunctionWithTheTransactionAndAnErrorIsAHandler(t *testing.T) {
	s := serve(t, func(s *service, r chi.Router) {
		create := func(w http.ResponseWriter, r *http.Request, tx pgx.Tx) error {
			var order struct{ Name string }
			if err := once.ReadJSON(r, &order); err != nil {
				return err
			}
			if _, err := tx.Exec(r.Context(), insert, order.Name); err != nil {
				return err
			}
			w.Header().Set("X-Name", order.Name)
			return once.WriteJSON(w, http.StatusCreated, order)
		}
		r.Handle("/orders", s.db.Handler(once.HTTP{Tenant: once.OneTenant("shop")}, create))
	})
	for key, expected := range map[string]struct {
		body, said, kind string
		status           int
	}{
		"k-1": {`{"name": "apple"}`, "{\"Name\":\"apple\"}\n", "application/json", 201},
		"k-2": {`{"name": `, "The body cannot be read: unexpected EOF\n", "text/plain; charset=utf-8", 400},
	} {
		for _, replayed := range []string{"", "true"} {
			said := s.post(t, "/orders", key, "application/json", expected.body)
			equal(t, said.status, expected.status)
			equal(t, said.body, expected.said)
			equal(t, said.header.Get("Content-Type"), expected.kind)
			equal(t, said.header.Get("Idempotent-Replayed"), replayed)
		}
		equal(t, s.database.Number("SELECT count(*) FROM hapax.operations WHERE key = '"+key+"'"), 1)
	}
	equal(t, s.database.Effects("apple"), 1)
	response, err := http.Get(s.URL + "/orders")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	equal(t, response.StatusCode, http.StatusMethodNotAllowed)
}
