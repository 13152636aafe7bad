// Package frameworks shows that what wraps an http.Handler fits the frameworks that have handlers of their
// own. It is a module of its own, so that nobody else depends on them.
package frameworks

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"hapax.dev/once"
	"hapax.dev/once/internal/testdb"
	"hapax.dev/once/oncepgx"
)

const insert = "INSERT INTO effects (name) VALUES ($1)"

type order struct {
	Name string `json:"name"`
}

// withGin protects all routes of an engine.
func withGin(protect func(http.Handler) http.Handler) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.POST("/orders", func(c *gin.Context) {
		var asked order
		if err := c.ShouldBindJSON(&asked); err != nil {
			c.JSON(http.StatusBadRequest, gin.H{"error": err.Error()})
			return
		}
		ctx := c.Request.Context()
		if _, err := oncepgx.Tx(ctx).Exec(ctx, insert, asked.Name); err != nil {
			once.Fail(c.Writer, c.Request, err)
			return
		}
		c.JSON(http.StatusCreated, asked)
	})
	return protect(engine)
}

// withEcho protects one route. An error that a handler returns has to be answered before the transaction
// ends, or it would be taken for an answer without a body.
func withEcho(protect func(http.Handler) http.Handler) http.Handler {
	server := echo.New()
	protected := func(next echo.HandlerFunc) echo.HandlerFunc {
		return echo.WrapMiddleware(protect)(func(c echo.Context) error {
			if err := next(c); err != nil {
				c.Error(err)
			}
			return nil
		})
	}
	server.POST("/orders", func(c echo.Context) error {
		var asked order
		if err := c.Bind(&asked); err != nil {
			return err
		}
		ctx := c.Request().Context()
		if _, err := oncepgx.Tx(ctx).Exec(ctx, insert, asked.Name); err != nil {
			once.Fail(c.Response(), c.Request(), err)
			return nil
		}
		return c.JSON(http.StatusCreated, asked)
	}, protected)
	return server
}

func TestFrameworksRunARequestOnce(t *testing.T) {
	for name, with := range map[string]func(func(http.Handler) http.Handler) http.Handler{"gin": withGin, "echo": withEcho} {
		t.Run(name, func(t *testing.T) {
			database := testdb.New(t)
			pool, err := pgxpool.New(t.Context(), database.URL())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			protect := oncepgx.New(pool).Middleware(once.HTTP{Tenant: once.OneTenant("shop")})
			server := httptest.NewServer(with(protect))
			t.Cleanup(server.Close)
			for _, expected := range []struct {
				body, answer, replayed string
				status, effects        int
			}{
				{`{"name":`, "", "", 400, 0},
				{`{"name":`, "", "true", 400, 0},
				{`{"name":"apple"}`, `{"name":"apple"}`, "", 201, 1},
				{`{"name": "apple"}`, `{"name":"apple"}`, "true", 201, 1},
			} {
				key := map[bool]string{true: "broken", false: "whole"}[expected.status == 400]
				status, replayed, answer := post(t, server.URL+"/orders", key, expected.body)
				if status != expected.status || replayed != expected.replayed {
					t.Errorf("%s: %d, replayed %q", expected.body, status, replayed)
				}
				if expected.answer != "" && strings.TrimSpace(answer) != expected.answer {
					t.Errorf("%s: %s", expected.body, answer)
				}
				if effects := database.Effects("apple"); effects != expected.effects {
					t.Errorf("%s: %d effects", expected.body, effects)
				}
			}
		})
	}
}

func post(t *testing.T, url, key, body string) (status int, replayed, answer string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Idempotent-Replayed"), string(said)
}
