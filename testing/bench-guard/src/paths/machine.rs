//! The machine itself: what is decided, how it is stored, what is compared.

use std::{hint::black_box, time::Duration};

use bytes::Bytes;
use hapax_core::{
    Arrival, Body, Fence, Fingerprint, Header, Outcome, Owner, Policy, Record, Recovery,
    RequestParts, RunMode, State, Timestamp, codec::Row, decide,
};

use super::{SALT, operation};
use crate::{Failed, measure::each};

const NOW: Timestamp = Timestamp::from_micros(1_000_000);

pub(crate) fn decide_first(rounds: usize) -> Result<(), Failed> {
    let (arrival, policy) = (arrival()?, Policy::default());
    each(rounds, |_| (), |()| decide(NOW, black_box(&arrival), None, &policy));
    Ok(())
}

pub(crate) fn decide_replay(rounds: usize) -> Result<(), Failed> {
    let (arrival, record, policy) = (arrival()?, record()?, Policy::default());
    each(rounds, |_| (), |()| decide(NOW, &arrival, Some(black_box(&record)), &policy));
    Ok(())
}

pub(crate) fn encode(rounds: usize) -> Result<(), Failed> {
    let record = record()?;
    each(rounds, |_| (), |()| Row::seal(black_box(&record)));
    Ok(())
}

pub(crate) fn decode(rounds: usize) -> Result<(), Failed> {
    let row = Row::seal(&record()?);
    each(rounds, |_| row.clone(), |row| row.open(NOW));
    Ok(())
}

pub(crate) fn fingerprint_512(rounds: usize) -> Result<(), Failed> {
    fingerprint(rounds, 512)
}

pub(crate) fn fingerprint_16k(rounds: usize) -> Result<(), Failed> {
    fingerprint(rounds, 16 << 10)
}

fn fingerprint(rounds: usize, len: usize) -> Result<(), Failed> {
    let (body, key) = (vec![b'a'; len], SALT.tenant_key(operation(0)?.tenant()));
    let headers: [(&str, &[u8]); 1] = [("content-type", b"application/json")];
    let request = RequestParts {
        method: b"POST",
        path: b"/payments",
        query: b"",
        headers: &headers,
        body: &body,
    };
    each(rounds, |_| (), |()| key.fingerprint(black_box(&request)));
    Ok(())
}

fn arrival() -> Result<Arrival, Failed> {
    Ok(Arrival {
        operation: operation(0)?,
        fingerprint: Fingerprint::from_bytes([3; Fingerprint::BYTES]),
        owner: Owner(1),
        mode: RunMode::Run { request: None },
    })
}

/// A finished one, as most records are.
fn record() -> Result<Record, Failed> {
    let headers = [
        ("content-type", "application/json"),
        ("location", "/payments/81723"),
        ("x-request-id", "5e0f8a1c-1d1e-4f6b-9a55-3a3d4d0f7a10"),
    ];
    let headers = headers.map(|(name, value)| Header {
        name: name.to_owned(),
        value: Bytes::from_static(value.as_bytes()),
    });
    let body = Body::Kept(Bytes::from(vec![b'a'; 512]));
    let Arrival { operation, fingerprint, owner, .. } = arrival()?;
    Ok(Record {
        operation,
        fingerprint,
        fence: Fence::FIRST,
        owner,
        recovery: Recovery::Hold,
        created_at: Timestamp::ZERO,
        changed_at: Timestamp::ZERO,
        expires_at: Timestamp::from_micros(i64::MAX / 2),
        tombstone: Duration::ZERO,
        state: State::Completed { outcome: Outcome::new(201, headers.into(), body)? },
    })
}
