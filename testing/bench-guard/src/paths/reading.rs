//! What clients write, read.

use std::hint::black_box;

use hapax_tower::{KeyForm, canonical_json, parse_key};

use super::key;
use crate::{Failed, measure::each};

/// A payment as a client spells it: its own order of members, its own spaces, text beyond ASCII.
const PAYMENT: &str = r#"{
  "amount": 12999, "currency": "EUR", "capture": true, "discount": 0.150,
  "customer": {"name": "Zo\u00eb M\u00fcller", "email": "zoe@example.com", "id": 71},
  "items": [
    {"sku": "a-100", "price": 4999, "quantity": 2, "note": null},
    {"sku": "b-200", "price": 3001, "quantity": 1, "note": "gift \"wrapped\""}
  ],
  "metadata": {"shop": "berlin-3", "cart": "a81b-77", "attempt": 1e0}
}"#;

pub(crate) fn key_quoted(rounds: usize) -> Result<(), Failed> {
    read_key(rounds, &format!("\"{}\"", key(0)))
}

pub(crate) fn key_bare(rounds: usize) -> Result<(), Failed> {
    read_key(rounds, &key(0))
}

fn read_key(rounds: usize, value: &str) -> Result<(), Failed> {
    let read = || parse_key(black_box(value.as_bytes()), KeyForm::QuotedOrBare);
    read().map_err(|code| code.code())?;
    each(rounds, |_| (), |()| read());
    Ok(())
}

pub(crate) fn canonical(rounds: usize) -> Result<(), Failed> {
    let ignored = ["/metadata/attempt".to_owned()];
    let spell = || canonical_json(black_box(PAYMENT.as_bytes()), &ignored);
    spell()?;
    each(rounds, |_| (), |()| spell());
    Ok(())
}
