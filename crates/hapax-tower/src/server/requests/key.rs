//! The key, read from its header.

use hapax_core::{InvalidName, Key};
use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::{BareItem, Item, Parser};

use crate::{
    header_names::IDEMPOTENCY_KEY,
    server::{
        options::{KeyForm, KeySpelling, Protection},
        responses::{code::Code, problem::Problem},
    },
};

/// Reads the one key under this header; `None` if there is no such header.
pub(crate) fn read(
    headers: &HeaderMap,
    name: &HeaderName,
    form: KeyForm,
) -> Result<Option<Key>, Problem> {
    let mut lines = headers.get_all(name).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(Problem::new(Code::KeyRepeated, "Send the header with one key, once."));
    }
    parse(line.as_bytes(), form).map(Some)
}

/// Writes the key as the service is told every key of this route, however it was sent or made: what is
/// kept or sent again must not look like another key.
pub(crate) fn respell(headers: &mut HeaderMap, protection: &Protection, key: &Key) {
    let (name, spelling) = (protection.key_header(), protection.key_spelling);
    let is_as_sent = protection.read_as() == KeyForm::AsItIs;
    let is_quoted = match spelling {
        KeySpelling::OfTheHeader => *name == IDEMPOTENCY_KEY && !is_as_sent,
        KeySpelling::Quoted => true,
        KeySpelling::Bare => false,
    };
    // Looked for first: an entry would make room for one more.
    let Some(written) = headers.get_mut(name) else {
        // It was derived, and not written yet.
        if let Some(spelled) = spelled(key, is_quoted) {
            headers.insert(name, spelled);
        }
        return;
    };
    // What was read as this key and holds it between two quotes escapes nothing.
    let is_so_already = match (is_quoted, written.as_bytes()) {
        (true, [b'"', within @ .., b'"']) => within == key.as_str().as_bytes(),
        (true, _) => false,
        (false, sent) => is_as_sent || sent == key.as_str().as_bytes(),
    };
    if !is_so_already && let Some(spelled) = spelled(key, is_quoted) {
        *written = spelled;
    }
}

/// The key as a header has it. It is visible ASCII, which every header may hold.
fn spelled(key: &Key, is_quoted: bool) -> Option<HeaderValue> {
    let bare_is_clear =
        || parse(key.as_str().as_bytes(), KeyForm::QuotedOrBare).is_ok_and(|bare| bare == *key);
    if is_quoted || !bare_is_clear() {
        let escaped = key.as_str().replace('\\', "\\\\").replace('"', "\\\"");
        return HeaderValue::try_from(["\"", &escaped, "\""].concat()).ok();
    }
    HeaderValue::from_str(key.as_str()).ok()
}

/// The key in the value of a header, read as the layer reads it; otherwise why it is refused.
///
/// ```
/// use hapax_tower::{Code, KeyForm, parse_key};
///
/// let key = parse_key(b"\"order-17\"", KeyForm::Quoted)?;
/// assert_eq!(key.as_str(), "order-17");
/// assert_eq!(parse_key(b"", KeyForm::QuotedOrBare), Err(Code::KeyEmpty));
/// # Ok::<(), Code>(())
/// ```
pub fn parse_key(value: &[u8], form: KeyForm) -> Result<Key, Code> {
    parse(value, form).map_err(|problem| problem.code)
}

fn parse(raw: &[u8], form: KeyForm) -> Result<Key, Problem> {
    let raw = raw.trim_ascii();
    let key = if form == KeyForm::AsItIs {
        Key::parse(raw)
    } else if let Some(plain) = plainly_quoted(raw) {
        Key::parse(plain)
    } else if raw.first() == Some(&b'"') {
        Key::parse(quoted(raw)?)
    } else {
        bare(raw, form)?;
        Key::parse(raw)
    };
    key.map_err(|refusal| {
        let code = if matches!(refusal, InvalidName::Empty { .. }) {
            Code::KeyEmpty
        } else if matches!(refusal, InvalidName::TooLong { .. }) {
            Code::KeyTooLong
        } else {
            Code::KeyMalformed
        };
        Problem::new(code, refusal.to_string())
    })
}

/// What most clients send: visible characters between two quotes, without an escape.
fn plainly_quoted(raw: &[u8]) -> Option<&[u8]> {
    let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') & (*byte != b'"') & (*byte != b'\\');
    // Without a way out half-way, many bytes are looked at together.
    inner.iter().fold(true, |plain, byte| plain & is_plain(byte)).then_some(inner)
}

/// An item of RFC 9651 that is a string and nothing else.
fn quoted(raw: &[u8]) -> Result<String, Problem> {
    let item: Item = Parser::new(raw)
        .parse()
        .map_err(|_| malformed("It is not one quoted string of RFC 9651."))?;
    if !item.params.is_empty() {
        return Err(malformed("A key has no parameters."));
    }
    let BareItem::String(text) = item.bare_item else {
        return Err(malformed("It is not a string of RFC 9651."));
    };
    Ok(text.as_str().to_owned())
}

/// Whether an unquoted key can be nothing but that key.
fn bare(raw: &[u8], form: KeyForm) -> Result<(), Problem> {
    if raw.is_empty() {
        return Ok(());
    }
    let starts_otherwise = matches!(raw.first(), Some(b':' | b'?' | b'@' | b'('));
    if starts_otherwise || raw.iter().any(|byte| matches!(byte, b'"' | b',' | b';' | b'\\')) {
        return Err(malformed("It is neither one quoted string nor one plain key."));
    }
    match form {
        KeyForm::QuotedOrBare | KeyForm::AsItIs => Ok(()),
        KeyForm::Quoted => Err(Problem::new(Code::KeyNotQuoted, "Put the key in double quotes.")),
    }
}

fn malformed(detail: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(Code::KeyMalformed, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, form: KeyForm, expected: Result<&str, Code>) {
        let key = parse_key(raw.as_bytes(), form);
        assert_eq!(key.as_ref().map(Key::as_str).map_err(|code| *code), expected, "{raw}");
    }

    #[test]
    fn the_quoted_and_the_bare_form_are_the_same_key() {
        check("\"a-1\"", KeyForm::QuotedOrBare, Ok("a-1"));
        check("a-1", KeyForm::QuotedOrBare, Ok("a-1"));
        check("  \"a b\" ", KeyForm::QuotedOrBare, Ok("a b"));
        check("\"a\\\"b\\\\\"", KeyForm::QuotedOrBare, Ok("a\"b\\"));
    }

    #[test]
    fn a_strict_route_takes_the_quoted_form_alone() {
        check("\"a-1\"", KeyForm::Quoted, Ok("a-1"));
        check("a-1", KeyForm::Quoted, Err(Code::KeyNotQuoted));
        check("17", KeyForm::Quoted, Err(Code::KeyNotQuoted));
        check(":YWI=:", KeyForm::Quoted, Err(Code::KeyMalformed));
    }

    #[test]
    fn a_key_that_is_taken_as_it_is_may_be_any_text() {
        for raw in ["a-1", "\"a-1\"", "a;b, \"c\" \\", ":YWI=:", "?1", "a b"] {
            check(raw, KeyForm::AsItIs, Ok(raw));
        }
        check("  ", KeyForm::AsItIs, Err(Code::KeyEmpty));
        check("schl\u{fc}ssel", KeyForm::AsItIs, Err(Code::KeyMalformed));
        check(&"k".repeat(256), KeyForm::AsItIs, Err(Code::KeyTooLong));
    }

    #[test]
    fn keys_that_are_not_one_string_are_refused() {
        for raw in [
            "\"a\", \"b\"",
            "a, b",
            "\"a\";v=1",
            "a;v=1",
            "\"a",
            "\"a\\n\"",
            "\"a\"b",
            ":YWI=:",
            "?1",
            "@17",
            "(\"a\")",
            "a\"b",
            "\"schl\u{fc}ssel\"",
            "schl\u{fc}ssel",
            "\"a\tb\"",
        ] {
            check(raw, KeyForm::QuotedOrBare, Err(Code::KeyMalformed));
        }
    }

    #[test]
    fn empty_and_overlong_keys_are_refused_and_never_cut() {
        for raw in ["", "   ", "\"\"", "\"  \""] {
            check(raw, KeyForm::QuotedOrBare, Err(Code::KeyEmpty));
            check(raw, KeyForm::Quoted, Err(Code::KeyEmpty));
        }
        let longest = "k".repeat(255);
        check(&longest, KeyForm::QuotedOrBare, Ok(&longest));
        check(&format!("\"{longest}\""), KeyForm::Quoted, Ok(&longest));
        check(&"k".repeat(256), KeyForm::QuotedOrBare, Err(Code::KeyTooLong));
        check(&format!("\"{}\"", "k".repeat(256)), KeyForm::Quoted, Err(Code::KeyTooLong));
    }
}
