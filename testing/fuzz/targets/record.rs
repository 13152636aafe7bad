//! A stored record, read after a disk, a driver or a person has been at it.
#![no_main]
#![expect(clippy::unwrap_used, reason = "what is not expected is what is looked for")]

use bytes::Bytes;
use hapax_core::{
    Key, Operation, OperationId, Scope, Tenant, Timestamp,
    codec::{self, Row, Sealed},
};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let now = Timestamp::from_micros(input.long());
    let row = row(&mut input);
    let Ok(record) = row.clone().open(now) else { return };
    assert_eq!(row.summary().unwrap().stamp.fence, record.fence);
    let sealed = Row::seal(&record);
    assert_eq!(sealed.clone().open(now).as_ref(), Ok(&record), "what is written is read back");
    let (Some(kept), Some(written)) = (row.outcome, sealed.outcome) else { return };
    assert_eq!(written, kept, "an outcome has one stored form");
    for altered in alterations(&kept) {
        assert!(codec::open(row.id, &altered).is_err(), "altered to {altered:?}");
    }
});

/// A row whose id and digest are right, unless the first byte says otherwise.
fn row(input: &mut Input<'_>) -> Row {
    let flags = input.byte();
    let is_set = |bit: u8| flags & bit != 0;
    let (format, state) = (i16::from(input.byte()), i16::from(input.byte()));
    let (recovery, doubt) = (i16::from(input.byte()), i16::from(input.byte()));
    let (fence, owner, until) = (input.long(), input.long(), input.long());
    let (created_at, changed_at) = (input.long(), input.long());
    let (expires_at, tombstone) = (input.long(), input.long());
    let (tenant, scope, key) = (input.text(), input.text(), input.text());
    let id = id(&tenant, &scope, &key).filter(|_| !is_set(1));
    let id = id.unwrap_or(OperationId::from_bytes([0; 16]));
    let fingerprint = input.chunk().to_vec();
    let request = is_set(2).then(|| Bytes::copy_from_slice(input.chunk()));
    let (head, body) = (Bytes::copy_from_slice(input.chunk()), Bytes::copy_from_slice(input.0));
    let digest = if is_set(4) { [0; 16] } else { digest(id, &head, &body) };
    let outcome = is_set(8).then_some(Sealed { head, body, digest });
    Row {
        id,
        format,
        tenant,
        scope,
        key,
        fingerprint,
        state,
        fence,
        owner,
        recovery,
        doubt,
        until,
        created_at,
        changed_at,
        expires_at,
        tombstone,
        request,
        outcome,
    }
}

fn id(tenant: &str, scope: &str, key: &str) -> Option<OperationId> {
    let (tenant, scope) = (Tenant::parse(tenant).ok()?, Scope::parse(scope).ok()?);
    Some(Operation::new(tenant, scope, Key::parse(key).ok()?).id())
}

/// As it has always been stored; without it no input would come past the first check.
fn digest(id: OperationId, head: &[u8], body: &[u8]) -> [u8; 16] {
    let len = u32::try_from(head.len()).unwrap().to_be_bytes();
    let hash = Sha256::new().chain_update(id.as_bytes()).chain_update(len);
    let hash = hash.chain_update(head).chain_update(body).finalize();
    hash[..16].try_into().unwrap()
}

/// The same with one bit changed: in the head, the body and the digest.
fn alterations(sealed: &Sealed) -> Vec<Sealed> {
    let flipped = |bytes: &Bytes| {
        let mut bytes = bytes.to_vec();
        let last = bytes.last_mut()?;
        *last ^= 1;
        Some(Bytes::from(bytes))
    };
    let mut digest = sealed.digest;
    digest[0] ^= 1;
    let head = flipped(&sealed.head).map(|head| Sealed { head, ..sealed.clone() });
    let body = flipped(&sealed.body).map(|body| Sealed { body, ..sealed.clone() });
    head.into_iter().chain(body).chain([Sealed { digest, ..sealed.clone() }]).collect()
}

/// What is left of the input; zero and nothing after its end.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn long(&mut self) -> i64 {
        self.take(8).iter().fold(0, |long, byte| long << 8 | i64::from(*byte))
    }

    fn chunk(&mut self) -> &'a [u8] {
        let len = self.byte();
        self.take(usize::from(len))
    }

    fn text(&mut self) -> String {
        String::from_utf8_lossy(self.chunk()).into_owned()
    }
}
