package once

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hapax.dev/once/internal/testdb"
)

func TestAKeyIsReadAlike(t *testing.T) {
	type vector struct {
		Lines        []string
		Key, Refused string
	}
	for _, v := range testdb.Vectors[vector](t, "keys.json") {
		key, err := ParseKey(v.Lines)
		code := ""
		if refused := (*KeyError)(nil); errors.As(err, &refused) {
			code = refused.Code
		}
		if key != v.Key || code != v.Refused {
			t.Errorf("%q: %q %q, expected %q %q", v.Lines, key, code, v.Key, v.Refused)
		}
		if _, known := refusals[v.Refused]; v.Refused != "" && !known {
			t.Errorf("%s has no title", v.Refused)
		}
	}
}

func TestAKeyIsWrittenSoThatItIsReadAsItself(t *testing.T) {
	for _, v := range testdb.Vectors[struct{ Key, Line string }](t, "quoting.json") {
		if line := FormatKey(v.Key); line != v.Line {
			t.Errorf("%s is written %s, expected %s", v.Key, line, v.Line)
		}
	}
}

func TestKeysAreUUIDsOfVersion7AndDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		key := NewKey()
		if len(key) != 36 || key[14] != '7' || !strings.ContainsRune("89ab", rune(key[19])) || seen[key] {
			t.Fatalf("made %s", key)
		}
		seen[key] = true
		millis, err := strconv.ParseInt(key[:8]+key[9:13], 16, 64)
		if apart := time.Since(time.UnixMilli(millis)); err != nil || apart < 0 || apart > time.Minute {
			t.Fatalf("%s was made %v ago", key, apart)
		}
	}
}

func TestAJSONValueHasOneSpelling(t *testing.T) {
	type vector struct {
		Text      string
		Ignored   []string
		Canonical *string
	}
	for _, v := range testdb.Vectors[vector](t, "canonical-json.json") {
		spelled, err := CanonicalJSON([]byte(v.Text), v.Ignored...)
		switch {
		case v.Canonical == nil && !errors.Is(err, ErrNotCanonical):
			t.Errorf("%s is spelled %s", v.Text, spelled)
		case v.Canonical != nil && string(spelled) != *v.Canonical:
			t.Errorf("%s is spelled %s (%v), expected %s", v.Text, spelled, err, *v.Canonical)
		}
	}
	for _, text := range []string{"\"\xff\"", `"\ud83dx"`, `"\ud83d\u0041"`, `"\x"`, `"\u12"`, `"\`, `"`, "{", "[", `{"a"`, `{"a":`, "-", "[1", "nul"} {
		if spelled, err := CanonicalJSON([]byte(text)); err == nil {
			t.Errorf("%s is spelled %s", text, spelled)
		}
	}
}

func FuzzCanonicalJSON(f *testing.F) {
	for _, text := range []string{`{"b": 1e2, "a": ["\ud83d\ude00", -0.10, null]}`, "[1,2,]", `"\u0022`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		spelled, err := CanonicalJSON(text)
		if err != nil {
			return
		}
		again, err := CanonicalJSON(spelled)
		if err != nil || string(again) != string(spelled) || !json.Valid(text) || !json.Valid(spelled) {
			t.Errorf("%q is spelled %q, and that %q (%v)", text, spelled, again, err)
		}
	})
}

func TestAnAnswerIsKeptAlike(t *testing.T) {
	type vector struct {
		Status int
		End    string
	}
	words := map[ending]string{finish: "finish", fail: "fail", rollback: "rollback"}
	for _, v := range testdb.Vectors[vector](t, "statuses.json") {
		if word := words[endingOf(v.Status)]; word != v.End {
			t.Errorf("%d ends with %s, expected %s", v.Status, word, v.End)
		}
	}
}

func TestARefusalIsTheSameDocumentEverywhere(t *testing.T) {
	type vector struct {
		Code     string
		Status   int
		Headers  [][2]string
		Document map[string]any
	}
	seen := 0
	for _, v := range testdb.Vectors[vector](t, "problems.json") {
		if _, ours := refusals[v.Code]; !ours {
			continue
		}
		seen++
		said := httptest.NewRecorder()
		(&problem{code: v.Code, detail: "What happened."}).write(said)
		var document map[string]any
		if err := json.Unmarshal(said.Body.Bytes(), &document); err != nil {
			t.Fatal(err)
		}
		if said.Code != v.Status || !reflect.DeepEqual(document, v.Document) {
			t.Errorf("%s is %d %v", v.Code, said.Code, document)
		}
		said.Header().Del("Content-Length")
		if headers := headersOf(said.Header()); !slices.Equal(headers, v.Headers) {
			t.Errorf("%s has %v, expected %v", v.Code, headers, v.Headers)
		}
	}
	if seen != len(refusals) {
		t.Errorf("%d of %d refusals are known elsewhere", seen, len(refusals))
	}
}

// headersOf are the lines of a header, in the order of their names.
func headersOf(header http.Header) [][2]string {
	var lines [][2]string
	for name, values := range header {
		for _, value := range values {
			lines = append(lines, [2]string{strings.ToLower(name), value})
		}
	}
	slices.SortStableFunc(lines, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return lines
}

func TestADecisionIsToldAlike(t *testing.T) {
	type vector struct {
		Row struct {
			Decision   string
			Status     int32
			Headers    json.RawMessage
			Body       *string
			RetryAfter int32 `json:"retry_after"`
			Differs    []string
			ExpiresAt  *time.Time `json:"expires_at"`
		}
		Answer *struct {
			Status      int
			Headers     [][2]string
			Body        string
			Code, Title string
			Detail      string
			RetryAfter  *int `json:"retry_after"`
		}
	}
	for _, v := range testdb.Vectors[vector](t, "decisions.json") {
		row := v.Row
		if row.Decision == execute {
			continue
		}
		b := &begun{
			decision: row.Decision, status: row.Status, header: string(row.Headers), kept: row.Body != nil,
			retryAfter: row.RetryAfter, differs: strings.Join(row.Differs, ","), expires: row.ExpiresAt,
		}
		if b.kept {
			b.body = []byte(*row.Body)
		}
		said := httptest.NewRecorder()
		answer, err := b.answer()
		if err == nil {
			answer.write(said, answer.Header)
			said.Header().Del("Content-Length")
			expected := slices.SortedStableFunc(slices.Values(v.Answer.Headers), func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
			if headers := headersOf(said.Header()); !slices.Equal(headers, expected) || said.Body.String() != v.Answer.Body {
				t.Errorf("%s is %v %s", row.Decision, headers, said.Body)
			}
		} else {
			problemOf(err).write(said)
			checkProblem(t, said, v.Answer.Code, v.Answer.Title, v.Answer.Detail, v.Answer.RetryAfter, row.Differs)
		}
		if said.Code != v.Answer.Status {
			t.Errorf("%s is %d", row.Decision, said.Code)
		}
	}
	if _, err := (&begun{decision: "dance"}).answer(); err == nil {
		t.Error("a decision that nobody knows is an error")
	}
}

func checkProblem(t *testing.T, said *httptest.ResponseRecorder, code, title, detail string, retryAfter *int, differs []string) {
	t.Helper()
	var document struct {
		Code, Title, Detail string
		Differs             []string
	}
	if err := json.Unmarshal(said.Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	if document.Code != code || document.Title != title || document.Detail != detail || !slices.Equal(document.Differs, differs) {
		t.Errorf("%s is %s", code, said.Body)
	}
	expected := ""
	if retryAfter != nil {
		expected = strconv.Itoa(*retryAfter)
	}
	if told := said.Header().Get("Retry-After"); told != expected {
		t.Errorf("%s is told to wait %q, expected %q", code, told, expected)
	}
}

// A serverError is what the server calls so.
type serverError string

func (e serverError) Error() string    { return "the server said " + string(e) }
func (e serverError) SQLState() string { return string(e) }

func TestAnErrorIsToldAlike(t *testing.T) {
	type vector struct {
		SQLState            string
		Status              int
		Code, Title, Detail string
		RetryAfter          *int `json:"retry_after"`
	}
	for _, v := range testdb.Vectors[vector](t, "errors.json") {
		err := translated(serverError(v.SQLState))
		if v.SQLState == "lost during COMMIT" {
			err = ErrOutcomeUnknown
		}
		said := httptest.NewRecorder()
		problemOf(err).write(said)
		if said.Code != v.Status {
			t.Errorf("%s is %d", v.SQLState, said.Code)
		}
		checkProblem(t, said, v.Code, v.Title, v.Detail, v.RetryAfter, nil)
	}
}
