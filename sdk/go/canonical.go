package once

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrNotCanonical is what a text that has no one spelling is refused with: it is not JSON, names a member
// twice, is nested more than 64 deep, or has a number beyond doubles.
var ErrNotCanonical = errors.New("once: the text is no JSON with one meaning")

const (
	depthMax = 64
	// The largest decimal exponent of a number, in either direction: a double holds every such number.
	exponentMax = 307
)

// CanonicalJSON is the one spelling of this JSON text, so that equal values have equal bytes, without the
// members and elements at these JSON pointers. Numbers are exact decimals: 100 is 1e2, and amounts that a
// double cannot tell apart are different.
func CanonicalJSON(text []byte, ignored ...string) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, ErrNotCanonical
	}
	r := jsonReader{text: text, ignored: ignored}
	out, ok := r.value(make([]byte, 0, len(text)), "", 0)
	if r.space(); !ok || r.at < len(text) {
		return nil, ErrNotCanonical
	}
	return out, nil
}

type jsonReader struct {
	text    []byte
	at      int
	ignored []string
}

// value reads the value at a pointer, and appends its spelling.
func (r *jsonReader) value(out []byte, pointer string, depth int) ([]byte, bool) {
	r.space()
	switch c := r.peek(); {
	case c == '{' && depth < depthMax:
		r.at++
		return r.object(out, pointer, depth+1)
	case c == '[' && depth < depthMax:
		r.at++
		return r.array(out, pointer, depth+1)
	case c == '"':
		text, ok := r.string()
		return appendString(out, text), ok
	case c == '-' || isDigit(c):
		return r.number(out)
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(r.text[r.at:], []byte(word)) {
			r.at += len(word)
			return append(out, word...), true
		}
	}
	return out, false
}

func (r *jsonReader) object(out []byte, pointer string, depth int) ([]byte, bool) {
	type member struct {
		name    string
		spelled []byte
		kept    bool
	}
	var members []member
	for first := true; ; first = false {
		if ended, ok := r.ends('}', first); ended || !ok {
			if !ok {
				return out, false
			}
			break
		}
		name, ok := r.string()
		if r.space(); !ok || !r.take(':') {
			return out, false
		}
		place := r.below(pointer, name)
		spelled, ok := r.value(append(appendString(nil, name), ':'), place, depth)
		if !ok {
			return out, false
		}
		members = append(members, member{name, spelled, !slices.Contains(r.ignored, place)})
	}
	slices.SortFunc(members, func(a, b member) int { return compareUTF16(a.name, b.name) })
	out = append(out, '{')
	any := false
	for i, m := range members {
		if i > 0 && members[i-1].name == m.name {
			return out, false
		}
		if m.kept {
			out = append(appendComma(out, any), m.spelled...)
			any = true
		}
	}
	return append(out, '}'), true
}

func (r *jsonReader) array(out []byte, pointer string, depth int) ([]byte, bool) {
	out = append(out, '[')
	any := false
	for index := 0; ; index++ {
		if ended, ok := r.ends(']', index == 0); ended || !ok {
			return append(out, ']'), ok
		}
		place := r.below(pointer, strconv.Itoa(index))
		before := len(out)
		spelled, ok := r.value(appendComma(out, any), place, depth)
		if !ok {
			return out, false
		}
		if out = spelled; slices.Contains(r.ignored, place) {
			out = out[:before]
		} else {
			any = true
		}
	}
}

// below is the pointer to a member; nobody asks for it where nothing is ignored.
func (r *jsonReader) below(pointer, name string) string {
	if len(r.ignored) == 0 {
		return ""
	}
	return pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// ends says whether the object or array ends here; otherwise it passes what separates its parts.
func (r *jsonReader) ends(closing byte, first bool) (ended, ok bool) {
	if r.space(); r.take(closing) {
		return true, true
	}
	if !first {
		if !r.take(',') {
			return false, false
		}
		r.space()
	}
	return false, true
}

func (r *jsonReader) string() (string, bool) {
	start := r.at
	if !r.take('"') {
		return "", false
	}
	plain := true
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			if plain {
				return string(r.text[start+1 : r.at-1]), true
			}
			return unescape(r.text[start:r.at])
		case c < ' ':
			return "", false
		case c == '\\':
			plain = false
			r.at++
		}
		r.at++
	}
	return "", false
}

// unescape reads a string with escapes. A half of a pair of surrogates is no character.
func unescape(literal []byte) (string, bool) {
	for at := 0; at < len(literal); at++ {
		if literal[at] != '\\' {
			continue
		}
		if at++; literal[at] != 'u' {
			continue
		}
		unit, ok := hexUnit(literal, at+1)
		if at += 4; !ok {
			return "", false
		}
		if !utf16.IsSurrogate(unit) {
			continue
		}
		if !bytes.HasPrefix(literal[at+1:], []byte(`\u`)) {
			return "", false
		}
		other, ok := hexUnit(literal, at+3)
		if at += 6; !ok || utf16.DecodeRune(unit, other) == utf8.RuneError {
			return "", false
		}
	}
	var text string
	err := json.Unmarshal(literal, &text)
	return text, err == nil
}

func hexUnit(literal []byte, at int) (rune, bool) {
	if at+4 > len(literal) {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(literal[at:at+4]), 16, 16)
	return rune(unit), err == nil
}

// number spells a number as its significant digits and a power of ten.
func (r *jsonReader) number(out []byte) ([]byte, bool) {
	negative := r.take('-')
	whole, fraction, exponent := r.digits(), "", "0"
	ok := whole != "" && (whole == "0" || whole[0] != '0')
	if r.take('.') {
		fraction = r.digits()
		ok = ok && fraction != ""
	}
	if r.take('e') || r.take('E') {
		sign := ""
		if r.take('-') {
			sign = "-"
		} else {
			r.take('+')
		}
		exponent = r.digits()
		ok = ok && exponent != ""
		exponent = sign + exponent
	}
	if !ok {
		return out, false
	}
	power, err := strconv.ParseInt(exponent, 10, 32)
	if err != nil {
		return out, false
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return append(out, '0'), true
	}
	power += int64(len(digits) - len(significant) - len(fraction))
	if magnitude := power + int64(len(significant)) - 1; magnitude > exponentMax || magnitude < -exponentMax {
		return out, false
	}
	if negative {
		out = append(out, '-')
	}
	out = append(out, significant...)
	if power != 0 {
		out = strconv.AppendInt(append(out, 'e'), power, 10)
	}
	return out, true
}

func (r *jsonReader) digits() string {
	start := r.at
	for isDigit(r.peek()) {
		r.at++
	}
	return string(r.text[start:r.at])
}

func (r *jsonReader) space() {
	for c := r.peek(); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = r.peek() {
		r.at++
	}
}

// peek is the next byte; zero, which begins nothing, at the end.
func (r *jsonReader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *jsonReader) take(c byte) bool {
	found := r.at < len(r.text) && r.text[r.at] == c
	if found {
		r.at++
	}
	return found
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func appendComma(out []byte, any bool) []byte {
	if any {
		return append(out, ',')
	}
	return out
}

// compareUTF16 orders names as RFC 8785 does, which differs from their bytes beyond the basic plane.
func compareUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

// appendString spells a string with the shortest escapes, and only those that JSON asks for.
func appendString(out []byte, text string) []byte {
	out = append(out, '"')
	for i := range len(text) {
		switch c := text[i]; c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\b':
			out = append(out, `\b`...)
		case '\f':
			out = append(out, `\f`...)
		case '\n':
			out = append(out, `\n`...)
		case '\r':
			out = append(out, `\r`...)
		case '\t':
			out = append(out, `\t`...)
		default:
			if c < ' ' {
				out = append(out, `\u00`...)
				out = append(out, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&0xf])
			} else {
				out = append(out, c)
			}
		}
	}
	return append(out, '"')
}
