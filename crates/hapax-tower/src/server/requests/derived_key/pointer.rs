//! A place in a JSON document, and what is there.

use std::str::FromStr;

use serde_json::Value;

/// A place in a JSON document, as RFC 6901 writes it: `/order/id`, `/items/0/sku`.
///
/// ```
/// use hapax_tower::JsonPointer;
///
/// let pointer: JsonPointer = "/order/id".parse()?;
/// assert_eq!(pointer.as_str(), "/order/id");
/// for text in ["", "order", "/a~2b"] {
///     assert!(text.parse::<JsonPointer>().is_err());
/// }
/// # Ok::<(), hapax_tower::InvalidPointer>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPointer {
    text: String,
    steps: Vec<PointerStep>,
}

/// A step inward.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PointerStep {
    /// The name of a member, as canonical JSON spells it.
    member: String,
    /// The place of an element, if it can be one.
    element: Option<usize>,
}

/// The text is no place in a JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no JSON pointer; write one such as `/order_id`")]
pub struct InvalidPointer;

impl FromStr for JsonPointer {
    type Err = InvalidPointer;

    fn from_str(text: &str) -> Result<Self, InvalidPointer> {
        let steps = text.strip_prefix('/').ok_or(InvalidPointer)?.split('/').map(PointerStep::read);
        Ok(Self {
            text: text.to_owned(),
            steps: steps.collect::<Option<_>>().ok_or(InvalidPointer)?,
        })
    }
}

impl PointerStep {
    fn read(token: &str) -> Option<Self> {
        let escapes = token.split('~').skip(1);
        if !escapes.clone().all(|rest| rest.starts_with(['0', '1'])) {
            return None;
        }
        let name = token.replace("~1", "/").replace("~0", "~");
        let is_index = token == "0" || !token.starts_with(['0', '+']);
        let element = is_index.then(|| token.parse().ok()).flatten();
        Some(Self { member: Value::from(name).to_string(), element })
    }
}

impl JsonPointer {
    /// The pointer as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What a JSON text has there, if anything. The text has to be canonical: what is no JSON is not
    /// noticed here, and what a member named twice means is not decided.
    pub(super) fn find<'j>(&self, canonical: &'j [u8]) -> Option<&'j [u8]> {
        let mut at = canonical;
        for step in &self.steps {
            at = step.inward(at)?;
        }
        at.get(..value_len(at))
    }
}

impl PointerStep {
    /// What follows from where the member or element begins.
    fn inward<'j>(&self, text: &'j [u8]) -> Option<&'j [u8]> {
        let (is_object, mut rest) = match text.split_first()? {
            (b'{', rest) => (true, rest),
            (b'[', rest) => (false, rest),
            _ => return None,
        };
        let mut place = 0;
        while !matches!(rest.first()?, b'}' | b']') {
            if is_object {
                let (name, value) = rest.split_at_checked(value_len(rest))?;
                rest = value.strip_prefix(b":")?;
                if name == self.member.as_bytes() {
                    return Some(rest);
                }
            } else if self.element == Some(place) {
                return Some(rest);
            }
            place += 1;
            rest = rest.get(value_len(rest)..)?;
            rest = rest.strip_prefix(b",").unwrap_or(rest);
        }
        None
    }
}

/// How many bytes the value takes that a text begins with.
fn value_len(text: &[u8]) -> usize {
    let (mut depth, mut in_text, mut at) = (0_usize, false, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' | b':' if depth == 0 => break,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    at.min(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::server::comparison::canonical::canonical_json;

    fn found(document: &str, pointer: &str) -> Option<String> {
        let canonical = canonical_json(document.as_bytes(), &[]).unwrap();
        let pointer: JsonPointer = pointer.parse().unwrap();
        pointer.find(&canonical).map(|value| String::from_utf8(value.to_vec()).unwrap())
    }

    #[test]
    fn a_value_is_found_where_the_pointer_says_and_nowhere_else() {
        let document = r#" {"a": {"b,]": [10, {"x": "}\"{"}, [ ]]}, "c/d": 1.50, "m~n": null,
                          "": true, "0": "zero", "e\u0066": "é" } "#;
        for (pointer, expected) in [
            ("/a/b,]/0", Some("1e1")),
            ("/a/b,]/1/x", Some(r#""}\"{""#)),
            ("/a/b,]/2", Some("[]")),
            ("/a/b,]/2/0", None),
            ("/a/b,]/3", None),
            ("/a/b,]/00", None),
            ("/a/b,]/-", None),
            ("/a/b,]/+1", None),
            ("/c~1d", Some("15e-1")),
            ("/m~0n", Some("null")),
            ("/", Some("true")),
            ("/0", Some(r#""zero""#)),
            ("/ef", Some(r#""é""#)),
            ("/c", None),
            ("/c~1d/0", None),
            ("/0/0", None),
        ] {
            assert_eq!(found(document, pointer).as_deref(), expected, "{pointer}");
        }
    }

    #[test]
    fn what_is_no_pointer_is_refused() {
        for text in ["", "a", "#/a", "/a~", "/~2", "/a~~1"] {
            assert_eq!(text.parse::<JsonPointer>(), Err(InvalidPointer), "{text}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~é\\\\\"]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-c/~\"\\\\]{0,2}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_another_reader_finds(
            document in any_json(),
            steps in prop::collection::vec("[a-c]{0,2}|~0|~1|0|1|2|\"", 1..4),
        ) {
            let pointer = format!("/{}", steps.join("/"));
            let expected = document.pointer(&pointer).map(|value| {
                canonical_json(value.to_string().as_bytes(), &[]).unwrap()
            });
            let found = found(&document.to_string(), &pointer).map(String::into_bytes);
            prop_assert_eq!(found, expected);
        }
    }
}
