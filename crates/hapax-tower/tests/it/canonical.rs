//! Equal JSON values have one spelling, and different values never share one.

use hapax_tower::{NotCanonical, canonical_json};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn canonical(text: &str) -> String {
    String::from_utf8(canonical_json(text.as_bytes(), &[]).unwrap()).unwrap()
}

#[test]
fn numbers_are_compared_as_exact_decimals() {
    for same in ["100", "100.0", "1e2", "1E+2", "10000e-2"] {
        assert_eq!(canonical(same), canonical("100"), "{same}");
    }
    for zero in ["0", "-0", "0.0", "0e5"] {
        assert_eq!(canonical(zero), "0");
    }
    assert_ne!(canonical("9007199254740993"), canonical("9007199254740992"));
    assert_ne!(canonical("0.1"), canonical("0.10000000000000001"));
    assert_ne!(canonical("1"), canonical("-1"));
    assert!(canonical_json(b"9.9e307", &[]).is_ok());
    for far in ["1.8e308", "1e308", "1e-308", "1e99999999999"] {
        let refused = canonical_json(far.as_bytes(), &[]).unwrap_err();
        assert!(matches!(refused, NotCanonical::OutOfRange { .. }), "{far}");
    }
}

#[test]
fn a_text_that_ends_too_early_is_refused_where_it_ends() {
    for cut in ["", "[", "[1,", "{\"a\"", "{\"a\":", "\"a", "\"a\\", "-", "1.", "1e"] {
        let refused = canonical_json(cut.as_bytes(), &[]);
        assert_eq!(refused, Err(NotCanonical::NotJson { at: cut.len() }), "{cut}");
    }
}

#[test]
fn members_are_ordered_by_their_utf_16_units_as_the_standard_says() {
    let text = "{\"\u{fb33}\":1,\"\u{1f600}\":2,\"a\":3}";
    assert_eq!(canonical(text), "{\"a\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}");
}

#[test]
fn a_pointer_names_a_member_and_nothing_else() {
    let ignored = ["/a/b".to_owned(), "/x~1y".to_owned()];
    let text = br#"{"a":{"b":1,"c":2},"b":3,"x/y":4}"#;
    let canonical = canonical_json(text, &ignored).unwrap();
    assert_eq!(canonical, br#"{"a":{"c":2},"b":3}"#);
}

#[test]
fn a_pointer_goes_through_arrays_by_index_alone() {
    let ignored = ["/sent_at", "/items/1/sent_at", "/items/2", "/deep/0/0"].map(str::to_owned);
    for (text, expected) in [
        (r#"[{"sent_at":1}]"#, r#"[{"sent_at":1}]"#),
        (r#"{"b":[{"sent_at":1}],"sent_at":2}"#, r#"{"b":[{"sent_at":1}]}"#),
        (
            r#"{"items":[{"sent_at":1},{"sent_at":2,"a":3},{"b":{"d":1,"c":2}},4]}"#,
            r#"{"items":[{"sent_at":1},{"a":3},4]}"#,
        ),
        (r#"{"items":{"1":{"sent_at":1}}}"#, r#"{"items":{"1":{}}}"#),
        (r#"{"deep":[[{"b":1,"a":2},{"d":3,"c":4}]]}"#, r#"{"deep":[[{"c":4,"d":3}]]}"#),
    ] {
        let canonical = canonical_json(text.as_bytes(), &ignored).unwrap();
        assert_eq!(String::from_utf8(canonical).unwrap(), expected, "{text}");
    }
}

/// What a reader who copies each object when it ends would copy for each level.
#[test]
fn members_are_moved_at_every_depth() {
    let (mut text, mut expected) = ("0".to_owned(), "0".to_owned());
    for level in 0..60 {
        text = format!(r#"{{"z":[{{"b":{level},"a":1}}],"m":{text},"a":[]}}"#);
        expected = format!(r#"{{"a":[],"m":{expected},"z":[{{"a":1,"b":{level}}}]}}"#);
    }
    let numbers_spelled = canonical(&expected);
    assert_eq!(canonical(&text), numbers_spelled);
    assert_eq!(canonical(r#"{"b":{"d":{},"c":{}},"a":1}"#), r#"{"a":1,"b":{"c":{},"d":{}}}"#);
}

/// The same value, its members in the opposite order and spelled widely.
fn spelled_otherwise(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().rev().map(|(name, value)| {
                format!(" {} :\n{}", Value::from(name.as_str()), spelled_otherwise(value))
            });
            format!("{{{}\t}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            let items = items.iter().map(spelled_otherwise).collect::<Vec<_>>();
            format!("[ {} ]", items.join(" , "))
        }
        Value::String(text) => {
            let units = text.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
            format!("\"{}\"", units.collect::<String>())
        }
        other => other.to_string(),
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(|number| json!(number)),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".{0,3}", inner, 0..5)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

/// Whether two values are the same, whole floating point numbers and integers alike.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            canonical(&one.to_string()) == canonical(&other.to_string())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let equal = |(name, value)| other.get(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(equal)
        }
        (one, other) => one == other,
    }
}

proptest! {
    #[test]
    fn spelling_does_not_change_the_canonical_form(value in values()) {
        let canonical_value = canonical(&value.to_string());
        prop_assert_eq!(&canonical_value, &canonical(&spelled_otherwise(&value)));
        prop_assert_eq!(&canonical_value, &canonical(&canonical_value));
    }

    #[test]
    fn different_values_have_different_forms(one in values(), other in values()) {
        let equal = canonical(&one.to_string()) == canonical(&other.to_string());
        prop_assert_eq!(equal, same(&one, &other));
    }

    #[test]
    fn whatever_the_bytes_reading_them_ends(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let ours = canonical_json(&bytes, &[]);
        let theirs = serde_json::from_slice::<Value>(&bytes);
        if theirs.is_err() {
            prop_assert!(ours.is_err());
        }
    }
}
