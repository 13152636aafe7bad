//! The value of a key's header, which any client may send.
#![no_main]
#![expect(clippy::panic, reason = "what is not expected is what is looked for")]

use hapax_tower::{Code, KeyForm, parse_key};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|value: &[u8]| {
    let strict = parse_key(value, KeyForm::Quoted);
    let lenient = parse_key(value, KeyForm::QuotedOrBare);
    match (&strict, &lenient) {
        (Ok(quoted), Ok(same)) => assert_eq!(quoted, same),
        (Err(code), Ok(bare)) => {
            assert_eq!(*code, Code::KeyNotQuoted);
            assert_eq!(bare.as_str().as_bytes(), value.trim_ascii(), "a bare key is what was sent");
        }
        (Err(_), Err(_)) => {}
        (Ok(key), Err(code)) => panic!("strict takes {key:?}, lenient refuses it: {code:?}"),
    }
    if let Ok(text) = parse_key(value, KeyForm::AsItIs) {
        assert_eq!(text.as_str().as_bytes(), value.trim_ascii(), "any text is itself");
    }
    let Ok(key) = lenient else { return };
    assert!((1..=255).contains(&key.as_str().len()));
    assert!(key.as_str().bytes().all(|byte| matches!(byte, b' '..=b'~')));
    let written = quoted(key.as_str());
    for form in [KeyForm::Quoted, KeyForm::QuotedOrBare] {
        assert_eq!(parse_key(written.as_bytes(), form).as_ref(), Ok(&key), "written as {written}");
    }
});

/// A string of RFC 9651.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
