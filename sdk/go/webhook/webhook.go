// Package webhook tells who sent a webhook, and when: signatures by the rules of Standard Webhooks.
//
//	secret, err := webhook.ParseSecret(os.Getenv("WEBHOOK_SECRET"))
//	…
//	received, err := webhook.Verifier{Secrets: []webhook.Secret{secret}}.Verify(r.Header, body)
//	if err != nil {
//		http.Error(w, err.Error(), http.StatusUnauthorized)
//	}
//
// Act once on received.ID: it is the same in every attempt.
package webhook

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Why a webhook is not to be acted on: answer 401.
var (
	// ErrUnsigned is for a header that is missing, there twice, or not what it should be.
	ErrUnsigned = errors.New("webhook: a header is not there once and readable")
	// ErrForged is for a webhook that no secret fits: somebody else sent it, or it was changed on its way.
	ErrForged = errors.New("webhook: no signature fits")
	// ErrUntimely is for a webhook that is genuine, and was sent too long ago or by a clock too far off.
	ErrUntimely = errors.New("webhook: it was sent too far away from now")
	// ErrNoSecret is for a text that is no secret. It is not repeated.
	ErrNoSecret = errors.New("webhook: not a secret: write whsec_ and 24 to 64 bytes in base64")
)

const (
	// Tolerance is how far the clocks of sender and receiver may be apart, transport included, if nothing
	// is said.
	Tolerance = 5 * time.Minute

	secretBytesMin = 24
	secretBytesMax = 64
	// Nobody rotates more secrets than that.
	signaturesMax = 16
)

// A Secret is what sender and receiver know, and nobody else.
type Secret struct{ key []byte }

// ParseSecret reads a secret: whsec_, which may be left out, and 24 to 64 bytes in base64.
func ParseSecret(text string) (Secret, error) {
	key, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(text, "whsec_"))
	if err != nil || len(key) < secretBytesMin || len(key) > secretBytesMax {
		return Secret{}, ErrNoSecret
	}
	return Secret{key}, nil
}

// String keeps the secret out of logs.
func (Secret) String() string { return "webhook.Secret(..)" }

// GoString keeps the secret out of logs.
func (s Secret) GoString() string { return s.String() }

// A Verifier tells genuine webhooks from others.
type Verifier struct {
	// Secrets are those of the sender: the old one and the new one while they change.
	Secrets []Secret
	// Tolerance is [Tolerance] if nothing is said.
	Tolerance time.Duration
	// Now is [time.Now] if nothing is said.
	Now func() time.Time
}

// A Received is a webhook that is genuine.
type Received struct {
	// ID is the event's: the same in every attempt, so it is what to act once on.
	ID string
	// At is when this attempt was made, by the sender's clock.
	At time.Time
}

// Verify says whether a webhook is genuine, by its headers and the bytes of its body.
func (v Verifier) Verify(header http.Header, body []byte) (*Received, error) {
	var found [3]string
	for i, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		values := header.Values(name)
		if len(values) != 1 {
			return nil, fmt.Errorf("%w: %s", ErrUnsigned, name)
		}
		found[i] = values[0]
	}
	id, timestamp, signatures := found[0], found[1], found[2]
	seconds, err := strconv.ParseUint(timestamp, 10, 62)
	if err != nil {
		return nil, fmt.Errorf("%w: Webhook-Timestamp", ErrUnsigned)
	}
	if !v.isGenuine(id+"."+strconv.FormatUint(seconds, 10)+".", body, signatures) {
		return nil, ErrForged
	}
	now := time.Now
	if v.Now != nil {
		now = v.Now
	}
	at := time.Unix(int64(seconds), 0)
	if apart := now().Sub(at).Abs(); apart > cmp.Or(v.Tolerance, Tolerance) {
		return nil, fmt.Errorf("%w: %v", ErrUntimely, apart)
	}
	return &Received{ID: id, At: at}, nil
}

func (v Verifier) isGenuine(before string, body []byte, signatures string) bool {
	genuine := false
	listed := strings.Fields(signatures)
	for _, signature := range listed[:min(len(listed), signaturesMax)] {
		encoded, isKnown := strings.CutPrefix(signature, "v1,")
		given, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if !isKnown || err != nil {
			continue
		}
		for _, secret := range v.Secrets {
			mac := hmac.New(sha256.New, secret.key)
			mac.Write([]byte(before))
			mac.Write(body)
			genuine = hmac.Equal(mac.Sum(nil), given) || genuine
		}
	}
	return genuine
}
