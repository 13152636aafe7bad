//! A body of JSON, brought to its one spelling before it is compared.
#![no_main]
#![expect(clippy::unwrap_used, reason = "what is not expected is what is looked for")]

use hapax_tower::{NotCanonical, canonical_json};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &[u8]| {
    let read = serde_json::from_slice::<Value>(text);
    match canonical_json(text, &[]) {
        Ok(canonical) => {
            assert_eq!(canonical_json(&canonical, &[]).as_ref(), Ok(&canonical), "of one spelling");
            let (read, again) = (read.unwrap(), serde_json::from_slice(&canonical).unwrap());
            assert!(same(&read, &again), "{read} became {again}");
        }
        Err(NotCanonical::NotJson { at }) => {
            assert!(at <= text.len());
            assert!(read.is_err(), "another reader takes it: {read:?}");
        }
        Err(_) => {}
    }
});

/// Whether two values are the same for a reader whose numbers are doubles.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= one.abs() * 1e-12
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let found = |(name, value)| other.get(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(found)
        }
        (one, other) => one == other,
    }
}
