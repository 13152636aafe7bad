package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hapax.dev/once/internal/testdb"
)

func TestAWebhookIsBelievedAlike(t *testing.T) {
	type vector struct {
		Secrets                        []string
		ID, Timestamp, Signature, Body string
		Now                            int64
		Verified                       string
	}
	words := map[string]error{"genuine": nil, "unsigned": ErrUnsigned, "forged": ErrForged, "untimely": ErrUntimely}
	for _, v := range testdb.Vectors[vector](t, "signatures.json") {
		verifier := Verifier{Now: func() time.Time { return time.Unix(v.Now, 0) }}
		for _, text := range v.Secrets {
			secret, err := ParseSecret(text)
			if err != nil {
				t.Fatal(err)
			}
			verifier.Secrets = append(verifier.Secrets, secret)
		}
		header := http.Header{"Webhook-Id": {v.ID}, "Webhook-Timestamp": {v.Timestamp}, "Webhook-Signature": {v.Signature}}
		received, err := verifier.Verify(header, []byte(v.Body))
		expected, known := words[v.Verified]
		if !known || !errors.Is(err, expected) {
			t.Errorf("%+v: %v", v, err)
		}
		if err == nil && (received.ID != v.ID || fmt.Sprint(received.At.Unix()) != v.Timestamp) {
			t.Errorf("%+v: %+v", v, received)
		}
		header.Add("Webhook-Id", v.ID)
		if _, err := verifier.Verify(header, []byte(v.Body)); !errors.Is(err, ErrUnsigned) {
			t.Errorf("with two ids: %v", err)
		}
	}
}

func TestASecretHas24To64BytesAndIsNotShown(t *testing.T) {
	for _, text := range []string{"", "whsec_", "whsec_c2hvcnQ=", "whsec_!", "whsec_" + strings.Repeat("QUFB", 22)} {
		if _, err := ParseSecret(text); !errors.Is(err, ErrNoSecret) {
			t.Errorf("%s is one", text)
		}
	}
	secret, err := ParseSecret("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if shown := fmt.Sprintf(verb, secret); shown != "webhook.Secret(..)" {
			t.Errorf("%s shows %s", verb, shown)
		}
	}
}
