//! `Content-Type`, read far enough to know how a body is compared (RFC 9110, section 8.3).

use std::borrow::Cow;

/// What a body is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaKind {
    /// JSON, under a name of its own or as the syntax of another type.
    Json,
    /// The fields of a form.
    Form,
    /// Parts with a boundary between them.
    Multipart,
    /// Anything else.
    Other,
}

/// The value of a `Content-Type` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MediaType<'a> {
    /// The type and subtype, in lower case.
    essence: Cow<'a, str>,
    /// The parameters, by name; no name is there twice.
    parameters: Vec<(String, Cow<'a, str>)>,
}

/// What most requests say, and need not be looked at.
const USUAL: [&str; 2] = ["application/json", "application/x-www-form-urlencoded"];

impl<'a> MediaType<'a> {
    /// `None` if it is not one media type with parameters that are clear.
    pub(crate) fn parse(value: &'a [u8]) -> Option<Self> {
        if let Some(usual) = USUAL.iter().find(|usual| usual.as_bytes() == value) {
            return Some(Self { essence: Cow::Borrowed(usual), parameters: Vec::new() });
        }
        let value = str::from_utf8(value).ok()?;
        let Some((essence, rest)) = value.split_once(';') else {
            return Some(Self { essence: essence_of(value)?, parameters: Vec::new() });
        };
        let essence = essence_of(essence)?;
        let mut parameters = Vec::new();
        for parameter in unquoted_split(rest).filter(|part| !part.trim().is_empty()) {
            let (name, value) = parameter.split_once('=')?;
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            if !is_token(&name) {
                return None;
            }
            let value = match name.as_str() {
                "charset" => Cow::Owned(unquoted(value)?.to_ascii_lowercase()),
                _ => Cow::Borrowed(unquoted(value)?),
            };
            parameters.push((name, value));
        }
        parameters.sort_unstable();
        let is_twice = parameters.windows(2).any(|pair| pair[0].0 == pair[1].0);
        (!is_twice).then_some(Self { essence, parameters })
    }

    pub(crate) fn kind(&self) -> MediaKind {
        match &*self.essence {
            "application/json" | "text/json" => MediaKind::Json,
            "application/x-www-form-urlencoded" => MediaKind::Form,
            essence if essence.ends_with("+json") => MediaKind::Json,
            essence if essence.starts_with("multipart/") => MediaKind::Multipart,
            _ => MediaKind::Other,
        }
    }

    /// The value of a parameter, without quotes around it.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name)?;
        Some(found.1.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(&found.1))
    }

    /// The type in one spelling, without what says nothing about the body as it is compared.
    ///
    /// Where `content` is compared that is the boundary of parts, and the character set of a type
    /// that has none (RFC 8259 for JSON, the URL standard for forms). Otherwise bytes are compared, and
    /// only the character set that everybody takes for granted says nothing.
    pub(crate) fn spelled(&self, content: bool) -> Cow<'_, [u8]> {
        if self.parameters.is_empty() {
            return Cow::Borrowed(self.essence.as_bytes());
        }
        let kind = if content { self.kind() } else { MediaKind::Other };
        let mut spelled = self.essence.to_string();
        for (name, value) in &self.parameters {
            let says_nothing = match (name.as_str(), kind) {
                ("boundary", MediaKind::Multipart) => true,
                ("charset", MediaKind::Other) => value == "utf-8",
                ("charset", MediaKind::Json | MediaKind::Form | MediaKind::Multipart) => true,
                (
                    _,
                    MediaKind::Json | MediaKind::Form | MediaKind::Multipart | MediaKind::Other,
                ) => false,
            };
            if !says_nothing {
                spelled.extend([";", name, "=", value]);
            }
        }
        Cow::Owned(spelled.into_bytes())
    }
}

/// A type and a subtype, in lower case.
fn essence_of(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim();
    let (kind, subtype) = text.split_once('/')?;
    if !is_token(kind) || !is_token(subtype) {
        return None;
    }
    Some(if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    })
}

/// What is between the semicolons that are not quoted.
fn unquoted_split(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |character| {
        quoted ^= character == '"';
        character == ';' && !quoted
    })
}

/// A value without quotes that change nothing. `None` if it is no value, or one with escapes, which
/// readers understand differently.
fn unquoted(value: &str) -> Option<&str> {
    match value.strip_prefix('"') {
        Some(quoted) => {
            let inner = quoted.strip_suffix('"')?;
            let is_clear = !inner.contains(['"', '\\']);
            is_clear.then_some(if is_token(inner) { inner } else { value })
        }
        // Boundaries are sent bare that should be quoted.
        None => {
            let is_clear = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
            (!value.is_empty() && value.bytes().all(is_clear)).then_some(value)
        }
    }
}

/// Whether it is a token of RFC 9110.
fn is_token(text: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(value: &str, content: bool) -> String {
        let parsed = MediaType::parse(value.as_bytes()).unwrap();
        String::from_utf8(parsed.spelled(content).into_owned()).unwrap()
    }

    #[test]
    fn what_says_nothing_about_the_content_is_left_out() {
        for (value, expected) in [
            ("application/json", "application/json"),
            ("Application/JSON ; Charset=UTF-8;", "application/json"),
            ("application/json;charset=\"utf-8\"", "application/json"),
            ("application/problem+json; charset=latin1", "application/problem+json"),
            ("application/json; version=2; charset=utf-8", "application/json;version=2"),
            ("application/json; b=1; a=2", "application/json;a=2;b=1"),
            ("text/plain; charset=utf-8", "text/plain"),
            ("text/plain; charset=iso-8859-1", "text/plain;charset=iso-8859-1"),
            ("multipart/form-data; boundary=\"a b;c\"", "multipart/form-data"),
            ("text/x; a=\"x;b=y\"", "text/x;a=\"x;b=y\""),
            ("text/x; boundary=1", "text/x;boundary=1"),
        ] {
            assert_eq!(spelled(value, true), expected, "{value}");
        }
    }

    #[test]
    fn where_bytes_are_compared_what_says_how_to_read_them_counts() {
        for (value, expected) in [
            ("application/json; charset=UTF-8", "application/json"),
            ("application/json; charset=latin1", "application/json;charset=latin1"),
            ("multipart/form-data; boundary=one", "multipart/form-data;boundary=one"),
        ] {
            assert_eq!(spelled(value, false), expected, "{value}");
        }
    }

    #[test]
    fn what_is_unclear_is_not_read() {
        for value in [
            "",
            "json",
            "a/b/c",
            "a/b; c",
            "a/b; c=1; C=2",
            "a/b; c=\"x",
            "a/b; c=\"\\x\"",
            "a/b;=1",
        ] {
            assert_eq!(MediaType::parse(value.as_bytes()), None, "{value}");
        }
    }
}
