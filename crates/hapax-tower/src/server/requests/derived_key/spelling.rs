//! The text of a derived key: `header/x-shop=north&body/order_id=17`.
//!
//! Names and values are percent-encoded, so that `&`, `=` and `:` only ever stand between them: two
//! keys are spelled alike only if every name and value is the same. `=` is before a text, `:=` before a
//! number.

use hapax_core::{Key, limits::KEY_BYTES_MAX};
use http::HeaderName;
use sha2::{Digest, Sha256};

use super::{content::JsonScalar, pointer::JsonPointer};

/// Largest power of ten by which a number is spelled with digits alone.
const PLAIN_EXPONENT_MAX: i64 = 32;

/// A key in the making.
#[derive(Debug, Default)]
pub(super) struct KeyText(String);

impl KeyText {
    pub(super) fn add_header(&mut self, name: &HeaderName, value: &[u8]) {
        self.begin("header/");
        encode(name.as_str().as_bytes(), &mut self.0);
        self.0.push('=');
        encode(value, &mut self.0);
    }

    pub(super) fn add_body(&mut self, pointer: &JsonPointer, value: &JsonScalar) {
        self.begin("body");
        for step in pointer.as_str().split('/').skip(1) {
            self.0.push('/');
            encode(step.as_bytes(), &mut self.0);
        }
        match value {
            JsonScalar::Text(text) => {
                self.0.push('=');
                encode(text.as_bytes(), &mut self.0);
            }
            JsonScalar::Number(number) => {
                self.0.push_str(":=");
                self.0.push_str(&plain_number(number));
            }
        }
    }

    /// The key of this text: the text itself where a key may be as long, and its hash otherwise. No
    /// text begins as a hash does. `None` if nothing was added.
    pub(super) fn into_key(self) -> Option<Key> {
        let Self(text) = self;
        if text.len() <= KEY_BYTES_MAX {
            return Key::parse(text).ok();
        }
        let mut hashed = "sha256:".to_owned();
        Sha256::digest(&text).iter().for_each(|byte| hashed.push_str(&format!("{byte:02x}")));
        Key::parse(hashed).ok()
    }

    fn begin(&mut self, place: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(place);
    }
}

/// Writes what RFC 3986 calls unreserved as it is, and every other byte as `%` and two digits.
fn encode(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(*byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
}

/// A canonical number as people write it: `17` and `1.5` for `17` and `15e-1`. Very large and very small
/// ones stay as they are.
fn plain_number(canonical: &str) -> String {
    let (digits, power) = canonical.split_once('e').unwrap_or((canonical, "0"));
    let Ok(power) = power.parse::<i64>() else { return canonical.to_owned() };
    let size = usize::try_from(power.unsigned_abs()).unwrap_or(usize::MAX);
    if power == 0 || power.abs() > PLAIN_EXPONENT_MAX {
        return canonical.to_owned();
    }
    if power > 0 {
        return [digits, &"0".repeat(size)].concat();
    }
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let padded = ["0".repeat((size + 1).saturating_sub(digits.len())).as_str(), digits].concat();
    let (whole, fraction) = padded.split_at(padded.len() - size);
    [sign, whole, ".", fraction].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_is_spelled_as_people_write_it() {
        for (canonical, plain) in [
            ("0", "0"),
            ("17", "17"),
            ("-17", "-17"),
            ("12e2", "1200"),
            ("15e-1", "1.5"),
            ("-5e-3", "-0.005"),
            ("5e-1", "0.5"),
            ("123456789012345678901234567890123", "123456789012345678901234567890123"),
            ("1e40", "1e40"),
            ("1e-40", "1e-40"),
        ] {
            assert_eq!(plain_number(canonical), plain);
        }
    }

    /// A value of a kind, and whether it is a number.
    fn any_scalar() -> impl Strategy<Value = JsonScalar> {
        prop_oneof![
            "[ -~é&=:%/1]{1,8}".prop_map(JsonScalar::Text),
            "[1-9]{1,3}(e-?[1-9])?".prop_map(JsonScalar::Number),
            "[1-9]{1,3}(e-?[1-9])?".prop_map(JsonScalar::Text),
        ]
    }

    fn any_pointer() -> impl Strategy<Value = JsonPointer> {
        "(/[a-b&=:%]{0,2}){1,2}".prop_map(|text| text.parse().unwrap())
    }

    type Values = (Vec<(JsonPointer, JsonScalar)>, Vec<(String, Vec<u8>)>);

    fn any_values() -> impl Strategy<Value = Values> {
        let body = prop::collection::vec((any_pointer(), any_scalar()), 0..3);
        let header = ("[a-b]{1,2}", prop::collection::vec(b' '..=b'~', 1..6));
        (body, prop::collection::vec(header, 0..3))
    }

    fn key(values: &Values) -> Option<Key> {
        let mut text = KeyText::default();
        for (name, value) in &values.1 {
            text.add_header(&HeaderName::try_from(name).unwrap(), value);
        }
        for (pointer, value) in &values.0 {
            text.add_body(pointer, value);
        }
        text.into_key()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn two_combinations_never_have_one_key(one in any_values(), other in any_values()) {
            prop_assert_eq!(key(&one) == key(&other), one == other);
        }

        #[test]
        fn a_key_is_visible_whatever_it_is_made_of(
            value in "\\PC{1,400}",
            header in prop::collection::vec(any::<u8>(), 1..400),
        ) {
            let mut text = KeyText::default();
            text.add_header(&HeaderName::from_static("x-shop"), &header);
            text.add_body(&"/id".parse().unwrap(), &JsonScalar::Text(value));
            prop_assert!(text.into_key().is_some());
        }
    }
}
