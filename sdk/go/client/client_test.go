package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hapax.dev/once/internal/testdb"
)

// A said is what the server answers an attempt with; nothing at all if there is no status.
type said struct {
	status int
	header map[string]string
	body   string
}

var silence = said{}

// A server answers attempts one after the other, and with the last answer from then on. It keeps what it
// was asked.
type server struct {
	*httptest.Server
	mutex sync.Mutex
	asked []*http.Request
	// Called with every attempt.
	onAsked func()
}

func serve(t *testing.T, answers ...said) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		s.mutex.Lock()
		answer := answers[min(len(s.asked), len(answers)-1)]
		s.asked = append(s.asked, r)
		s.mutex.Unlock()
		if s.onAsked != nil {
			s.onAsked()
		}
		if answer.status == 0 {
			<-r.Context().Done()
			return
		}
		w.Header()["Date"] = nil
		for name, value := range answer.header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(answer.status)
		_, _ = io.WriteString(w, answer.body)
	}))
	t.Cleanup(s.Close)
	return s
}

func quick() *http.Client {
	client := New()
	client.Transport = &Transport{Attempts: 3, Deadline: 3 * time.Second, AttemptTimeout: 300 * time.Millisecond, Pause: time.Millisecond}
	return client
}

func post(t *testing.T, client *http.Client, url string) (*http.Response, error) {
	t.Helper()
	response, err := client.Post(url, "application/json", strings.NewReader("{}"))
	if err == nil {
		t.Cleanup(func() { _ = response.Body.Close() })
	}
	return response, err
}

func pursue(t *testing.T, answers ...said) (*server, Report) {
	t.Helper()
	s := serve(t, answers...)
	return s, Tried(post(t, quick(), s.URL))
}

func equal[T comparable](t *testing.T, got, expected T) {
	t.Helper()
	if got != expected {
		t.Errorf("got %v, expected %v", got, expected)
	}
}

func TestAnAnswerMeansTheSameToEveryClient(t *testing.T) {
	type vector struct {
		Status                 int
		Headers                map[string]string
		Repeat                 bool
		Conclusion             Conclusion
		ConclusionAfterSilence Conclusion `json:"conclusion_after_silence"`
	}
	for _, v := range testdb.Vectors[vector](t, "answers.json") {
		t.Run(fmt.Sprint(v.Status, v.Headers), func(t *testing.T) {
			t.Parallel()
			answer := said{status: v.Status, header: v.Headers}
			_, tried := pursue(t, answer, said{status: 200})
			equal(t, tried.Attempts > 1, v.Repeat)
			_, tried = pursue(t, answer)
			equal(t, tried.Conclusion, v.Conclusion)
			_, tried = pursue(t, silence, answer)
			equal(t, tried.Conclusion, v.ConclusionAfterSilence)
		})
	}
}

func TestAllAttemptsOfACallHaveOneKey(t *testing.T) {
	s, tried := pursue(t, said{status: 503}, silence, said{status: 201, header: map[string]string{"Idempotent-Replayed": "true"}})
	equal(t, tried.Attempts, 3)
	equal(t, tried.Conclusion, Done)
	equal(t, tried.Replayed, true)
	equal(t, len(tried.Key), 36)
	for _, request := range s.asked {
		equal(t, request.Header.Get("Idempotency-Key"), `"`+tried.Key+`"`)
		equal(t, request.Header.Get("Hapax-Retry"), "never")
		equal(t, request.Header.Get("Hapax-Deadline") != "", true)
		equal(t, request.ContentLength, 2)
	}
	_, other := pursue(t, said{status: 201})
	equal(t, other.Key != tried.Key, true)
}

func TestAKeyThatIsGivenIsSentAsItIs(t *testing.T) {
	s := serve(t, said{status: 500}, said{status: 200})
	request, _ := http.NewRequest(http.MethodPost, s.URL, nil)
	request.Header.Set("Idempotency-Key", "order-17")
	tried := Tried(quick().Do(request))
	equal(t, tried.Key, "order-17")
	equal(t, s.asked[1].Header.Get("Idempotency-Key"), "order-17")
	equal(t, request.Header.Get("Hapax-Retry"), "")
}

func TestWhatIsHarmfulToRepeatIsSentOnce(t *testing.T) {
	s := serve(t, said{status: 500})
	client := quick()
	client.Transport.(*Transport).OnlyGivenKeys = true
	response, err := post(t, client, s.URL)
	equal(t, err, nil)
	equal(t, response.StatusCode, 500)
	equal(t, Tried(response, err), Report{Attempts: 1, Conclusion: Unknown})

	request, _ := http.NewRequest(http.MethodPost, s.URL, strings.NewReader("{}"))
	request.Header.Set("Hapax-Retry", "never")
	equal(t, Tried(quick().Do(request)).Attempts, 1)

	for method, attempts := range map[string]int{http.MethodGet: 3, http.MethodPut: 3, http.MethodDelete: 3} {
		request, _ := http.NewRequest(method, s.URL, nil)
		tried := Tried(quick().Do(request))
		equal(t, tried.Attempts, attempts)
		equal(t, tried.Key, "")
	}
}

func TestWhereNobodyListensItGivesUpBecauseNothingWasSent(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	_, err := post(t, quick(), s.URL)
	var failed *Error
	equal(t, errors.As(err, &failed), true)
	equal(t, failed.Conclusion, GaveUp)
	equal(t, failed.Attempts, 3)
	var dial *net.OpError
	equal(t, errors.As(err, &dial), true)
}

func TestSilenceIsUnknownAndTheErrorHasTheKeyToAskAgainWith(t *testing.T) {
	_, tried := pursue(t, silence)
	equal(t, tried.Conclusion, Unknown)
	equal(t, tried.Attempts, 3)
	equal(t, len(tried.Key), 36)
}

func TestWhoeverStopsWaitingHearsThatItIsUnknown(t *testing.T) {
	s := serve(t, silence)
	ctx, cancel := context.WithCancel(t.Context())
	s.onAsked = cancel
	request, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, nil)
	_, err := quick().Do(request)
	equal(t, Tried(nil, err).Conclusion, Unknown)
	equal(t, Tried(nil, err).Attempts, 1)
}

func TestABodyCutShortIsNoAnswerAndAServerThatContradictsItIsNotBelieved(t *testing.T) {
	cut := said{status: 201, header: map[string]string{"Content-Length": "100"}, body: "half"}
	_, tried := pursue(t, cut, said{status: 201})
	equal(t, tried.Conclusion, Done)
	_, tried = pursue(t, cut, said{status: 402, header: map[string]string{"Idempotency-Expires": "x"}})
	equal(t, tried.Conclusion, Unknown)
	_, tried = pursue(t, cut, said{status: 200})
	equal(t, tried.Conclusion, Unknown)
}

func TestARefusalAfterSilenceCountsOnlyFromSomebodyWhoKnowsTheKey(t *testing.T) {
	_, tried := pursue(t, silence, said{status: 402})
	equal(t, tried.Conclusion, Unknown)
	_, tried = pursue(t, silence, said{status: 402, header: map[string]string{"Idempotency-Expires": "x"}})
	equal(t, tried.Conclusion, Refused)
	s := serve(t, silence, said{status: 402, header: map[string]string{"Idempotency-Key": "order-17"}})
	request, _ := http.NewRequest(http.MethodPost, s.URL, nil)
	request.Header.Set("Idempotency-Key", `"order-17"`)
	equal(t, Tried(quick().Do(request)).Conclusion, Refused)
}

func TestOurRefusalIsReadFromItsDocumentWhereItHasNoMark(t *testing.T) {
	problem := map[string]string{"Content-Type": "application/problem+json"}
	_, tried := pursue(t, said{409, problem, `{"type": "https://x.test/errors/outcome-in-doubt", "code": "outcome-in-doubt"}`})
	equal(t, tried, Report{Key: tried.Key, Attempts: 1, Conclusion: Unknown})
	_, tried = pursue(t, said{503, problem, `{"type": "https://bank.test/overloaded"}`})
	equal(t, tried.Conclusion, Unknown)
}

func TestRetryAfterIsWaitedForUpToTheDeadline(t *testing.T) {
	s := serve(t, said{status: 503, header: map[string]string{"Retry-After": "1"}}, said{status: 200})
	client := quick()
	begun := time.Now()
	equal(t, Tried(post(t, client, s.URL)).Conclusion, Done)
	equal(t, time.Since(begun) >= time.Second, true)

	begun = time.Now()
	_, tried := pursue(t, said{status: 429, header: map[string]string{"Retry-After": "1000000"}}, said{status: 200})
	equal(t, tried, Report{Key: tried.Key, Attempts: 1, Conclusion: GaveUp})
	equal(t, time.Since(begun) < 5*time.Second, true)
}

func TestADateIsReadByTheClockOfWhoeverSentIt(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, told := range []struct {
		after, date string
		expected    time.Duration
		asked       bool
	}{
		{"7", "", 7 * time.Second, true},
		{"0", "", 0, true},
		{"Wed, 21 Oct 2015 07:28:30 GMT", "Wed, 21 Oct 2015 07:28:00 GMT", 30 * time.Second, true},
		{"Wed, 21 Oct 2015 07:27:30 GMT", "Wed, 21 Oct 2015 07:28:00 GMT", 0, true},
		{"Sun, 01 Mar 2026 00:01:00 GMT", "", time.Minute, true},
		{"soon", "", 0, false},
		{"-5", "", 0, false},
		{"1.5", "", 0, false},
		{"", "", 0, false},
	} {
		header := http.Header{}
		header.Set("Retry-After", told.after)
		header.Set("Date", told.date)
		pause, asked := retryAfter(header, now)
		equal(t, pause, told.expected)
		equal(t, asked, told.asked)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	s := serve(t, said{status: 307, header: map[string]string{"Location": "/elsewhere"}})
	response, err := post(t, New(), s.URL)
	equal(t, err, nil)
	equal(t, response.StatusCode, 307)
	equal(t, Tried(response, err).Conclusion, Refused)
	equal(t, len(s.asked), 1)
}

func TestABodyOverTheLimitIsRefusedBeforeAnythingIsSent(t *testing.T) {
	s := serve(t, said{status: 200})
	_, err := quick().Post(s.URL, "text/plain", strings.NewReader(strings.Repeat("x", requestBytesMax+1)))
	equal(t, Tried(nil, err).Conclusion, GaveUp)
	equal(t, len(s.asked), 0)
}

func TestAnAnswerIsHandedOnWhole(t *testing.T) {
	large := strings.Repeat("x", answerBytesMax+10)
	s := serve(t, said{status: 201, body: large})
	client := New()
	for _, ask := range []func() (*http.Response, error){
		func() (*http.Response, error) { return client.Get(s.URL) },
		func() (*http.Response, error) { return client.Post(s.URL, "text/plain", nil) },
	} {
		response, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		equal(t, err, nil)
		equal(t, len(body), len(large))
		equal(t, response.Body.Close(), nil)
	}
}

func TestAServerThatIsDownIsNotAttacked(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.WriteHeader(503)
	}))
	t.Cleanup(s.Close)
	client := quick()
	begun := time.Now()
	const requests = 200
	for range requests {
		_, _ = post(t, client, s.URL)
	}
	most := requests + retriesSavedMax + requests*retriesPerRequest + time.Since(begun).Seconds()*retriesPerSecond
	equal(t, float64(asked.Load()) <= most, true)
	equal(t, asked.Load() > requests+retriesSavedMax/2, true)
}
