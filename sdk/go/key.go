package once

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// ParseKey reads the key of a request from the lines of its header Idempotency-Key: quoted as RFC 9651
// says, or bare. The error is a [*KeyError].
func ParseKey(lines []string) (string, error) {
	switch len(lines) {
	case 0:
		return "", &KeyError{"key-missing", "Send the header Idempotency-Key with a key of your own for this operation."}
	case 1:
	default:
		return "", &KeyError{"key-repeated", "Send the header with one key, once."}
	}
	key, ok := parseKey(strings.Trim(lines[0], " \t\r\n\f"))
	switch {
	case !ok || !isVisible(key):
		return "", &KeyError{"key-malformed", "It is neither one quoted string of visible ASCII characters nor one plain key."}
	case strings.Trim(key, " ") == "":
		return "", &KeyError{"key-empty", "A key has at least one visible character."}
	case len(key) > keyMax:
		return "", &KeyError{"key-too-long", fmt.Sprintf("A key has at most %d characters.", keyMax)}
	}
	return key, nil
}

// FormatKey spells a key for the header Idempotency-Key.
func FormatKey(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// NewKey is a key that nobody has used before: a UUID of version 7.
func NewKey() string {
	var id [16]byte
	// It never fails, and fills the whole.
	_, _ = rand.Read(id[:])
	binary.BigEndian.PutUint64(id[:8], uint64(time.Now().UnixMilli())<<16|uint64(id[6])<<8|uint64(id[7]))
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// A KeyError is why a request has no key that can be used: Code is that of the refusal.
type KeyError struct {
	Code   string
	Detail string
}

func (e *KeyError) Error() string { return e.Code + ": " + e.Detail }

func parseKey(raw string) (string, bool) {
	if !strings.HasPrefix(raw, `"`) {
		isBare := raw == "" || !strings.ContainsRune(":?@(", rune(raw[0])) && !strings.ContainsAny(raw, "\",;\\")
		return raw, isBare
	}
	key := make([]byte, 0, len(raw))
	for i := 1; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			return string(key), i == len(raw)-1
		case '\\':
			if i++; i == len(raw) || raw[i] != '"' && raw[i] != '\\' {
				return "", false
			}
		}
		key = append(key, raw[i])
	}
	return "", false
}

func isVisible(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
