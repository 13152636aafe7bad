//! What a key may look like, for people and for tools that check it before they send it.

use hapax_core::limits::KEY_BYTES_MAX;

use crate::server::options::KeyForm;

/// One character of a quoted key, escapes included, and one that is no space.
const QUOTED: &str = r#"(?:[ !#-\[\]-~]|\\["\\])"#;
const QUOTED_VISIBLE: &str = r#"(?:[!#-\[\]-~]|\\["\\])"#;
/// The first character of a bare key, and the others.
const BARE_FIRST: &str = r"[!#-')-+\--9<->A-\[\]-~]";
const BARE: &str = r"[ !#-+\--:<-\[\]-~]";

/// A key in words.
pub(crate) fn described(form: KeyForm) -> String {
    let quoted = format!(
        "1 to {KEY_BYTES_MAX} visible ASCII characters and spaces, not spaces alone, in double \
         quotes; \" and \\ are escaped by \\ (a string of RFC 9651)"
    );
    match form {
        KeyForm::Quoted => quoted,
        KeyForm::QuotedOrBare => {
            let bare = "or the same without quotes, if none of \" , ; \\ is in it and it does not \
                        begin with : ? @ (";
            format!("{quoted}; {bare}")
        }
        KeyForm::AsItIs => format!(
            "1 to {KEY_BYTES_MAX} visible ASCII characters and spaces, not spaces alone, as they are"
        ),
    }
}

/// A regular expression, of ECMAScript as of others, for the values of the header. What fits and has
/// at most [`VALUE_BYTES_MAX`] bytes is taken.
pub(crate) fn pattern(form: KeyForm) -> String {
    let quoted = format!("\"{QUOTED}*{QUOTED_VISIBLE}{QUOTED}*\"");
    match form {
        KeyForm::Quoted => format!("^{quoted}$"),
        KeyForm::QuotedOrBare => {
            let rest = KEY_BYTES_MAX - 1;
            format!("^(?:{quoted}|{BARE_FIRST}{BARE}{{0,{rest}}})$")
        }
        KeyForm::AsItIs => {
            let between = KEY_BYTES_MAX - 2;
            format!("^[!-~](?:[ -~]{{0,{between}}}[!-~])?$")
        }
    }
}

/// Longest value of the header that is taken whatever is in it, in bytes: a key and two quotes.
pub(crate) const VALUE_BYTES_MAX: usize = KEY_BYTES_MAX + 2;

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, string::string_regex};

    use super::*;
    use crate::server::requests::key::parse_key;

    fn keys(form: KeyForm) -> impl Strategy<Value = String> {
        let pattern = pattern(form);
        let inner = pattern.trim_start_matches('^').trim_end_matches('$');
        string_regex(inner).unwrap().prop_filter("length", |key| key.len() <= VALUE_BYTES_MAX)
    }

    proptest! {
        #[test]
        fn what_fits_the_published_pattern_is_taken(
            strict in keys(KeyForm::Quoted),
            any in keys(KeyForm::QuotedOrBare),
            text in keys(KeyForm::AsItIs),
        ) {
            prop_assert!(parse_key(text.as_bytes(), KeyForm::AsItIs).is_ok(), "{text}");
            prop_assert!(parse_key(strict.as_bytes(), KeyForm::Quoted).is_ok(), "{strict}");
            prop_assert!(parse_key(any.as_bytes(), KeyForm::QuotedOrBare).is_ok(), "{any}");
        }
    }
}
