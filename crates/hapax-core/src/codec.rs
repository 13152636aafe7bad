//! How records and outcomes are stored: versioned, checked by digest, never guessed.
//!
//! A store keeps a [`Row`] in whatever columns it likes. Reading goes through [`Row::open`] alone,
//! which refuses what it does not know.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use sha2::{Digest, Sha256};

use crate::{
    fingerprint::Fingerprint,
    operation::{Key, Operation, OperationId, Scope, Tenant},
    outcome::{Body, Header, Outcome},
    policy::Recovery,
    record::{Doubt, Fence, Owner, Record, Stamp, State, StateTag},
    store::{StoreError, Summary},
    time::{Timestamp, micros},
};

/// The version this code writes, of rows and of outcome heads. It reads every version up to it.
pub const FORMAT: u8 = 1;

/// A record as a store keeps it: plain columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The id it is stored under.
    pub id: OperationId,
    /// The version of the row.
    pub format: i16,
    /// The tenant.
    pub tenant: String,
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// The fingerprint's bytes.
    pub fingerprint: Vec<u8>,
    /// [`StateTag`] as a number.
    pub state: i16,
    /// [`Fence`] as a number.
    pub fence: i64,
    /// [`Owner`] as a number.
    pub owner: i64,
    /// [`Recovery`] as a number.
    pub recovery: i16,
    /// [`Doubt`] as a number; zero where there is none.
    pub doubt: i16,
    /// The end of the lease or of the pick-up time, in microseconds; zero where there is none.
    pub until: i64,
    /// When its life began, in microseconds.
    pub created_at: i64,
    /// When its state was entered, in microseconds.
    pub changed_at: i64,
    /// Until when it is answered from, in microseconds.
    pub expires_at: i64,
    /// How long a tombstone lasts, in microseconds.
    pub tombstone: i64,
    /// The stored request.
    pub request: Option<Bytes>,
    /// The stored outcome.
    pub outcome: Option<Sealed>,
}

/// An outcome as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Version, status and headers.
    pub head: Bytes,
    /// The body as it is.
    pub body: Bytes,
    /// Of the id, the head and the body.
    pub digest: [u8; 16],
}

/// Why stored bytes were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// A newer version wrote it.
    #[error("it has format {found}; this version reads up to {FORMAT}: upgrade this process")]
    TooNew {
        /// The format found.
        found: i64,
    },
    /// A value that no version ever wrote.
    #[error("column {column} holds a value that was never written: {value}")]
    Impossible {
        /// Which column.
        column: &'static str,
        /// What it holds.
        value: String,
    },
    /// The digest does not match: the bytes are not those that were stored.
    #[error("the stored outcome does not match its digest")]
    Altered,
    /// The head ends early or holds more than it says.
    #[error("the stored outcome's head is malformed")]
    MalformedHead,
}

impl From<Unreadable> for StoreError {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::TooNew { .. } => Self::too_new(unreadable),
            Unreadable::Impossible { .. } | Unreadable::Altered | Unreadable::MalformedHead => {
                Self::damaged(unreadable)
            }
        }
    }
}

impl Row {
    /// The row that keeps this record.
    pub fn seal(record: &Record) -> Self {
        let id = record.operation.id();
        let doubt = match &record.state {
            State::InDoubt { doubt, .. } => *doubt as i16,
            State::Pending { .. }
            | State::Running { .. }
            | State::Completed { .. }
            | State::Failed { .. }
            | State::Released
            | State::Buried => 0,
        };
        Self {
            id,
            format: i16::from(FORMAT),
            tenant: record.operation.tenant().as_str().to_owned(),
            scope: record.operation.scope().as_str().to_owned(),
            key: record.operation.key().as_str().to_owned(),
            fingerprint: record.fingerprint.as_bytes().to_vec(),
            state: record.tag() as i16,
            fence: record.fence.get(),
            owner: record.owner.0,
            recovery: record.recovery as i16,
            doubt,
            until: record.until().as_micros(),
            created_at: record.created_at.as_micros(),
            changed_at: record.changed_at.as_micros(),
            expires_at: record.expires_at.as_micros(),
            tombstone: micros(record.tombstone),
            request: record.request().cloned(),
            outcome: record.outcome().map(|outcome| seal(id, outcome)),
        }
    }

    /// The record kept in this row.
    ///
    /// A finished record whose outcome is missing reads as buried once it is expired (`now` is the
    /// store's clock), because outcomes may be dropped in bulk; before that it is damaged.
    pub fn open(self, now: Timestamp) -> Result<Record, Unreadable> {
        let Summary { operation, stamp, recovery, created_at, changed_at, expires_at } =
            self.summary()?;
        let fingerprint = <[u8; Fingerprint::BYTES]>::try_from(self.fingerprint.as_slice())
            .map_err(|_| impossible("fingerprint", &self.fingerprint.len()))?;
        let tombstone = u64::try_from(self.tombstone)
            .map_err(|_| impossible("tombstone", &self.tombstone))
            .map(Duration::from_micros)?;
        let missing = || impossible("outcome", &"nothing");
        let outcome = match (&self.outcome, stamp.tag) {
            (Some(sealed), StateTag::Completed | StateTag::Failed) => Some(open(self.id, sealed)?),
            (_, _) => None,
        };
        let state = match (stamp.tag, outcome) {
            (StateTag::Pending, _) => State::Pending {
                pick_up_by: stamp.until,
                request: self.request.ok_or_else(|| impossible("request", &"nothing"))?,
            },
            (StateTag::Running, _) => {
                State::Running { lease_until: stamp.until, request: self.request }
            }
            (StateTag::Completed, Some(outcome)) => State::Completed { outcome },
            (StateTag::Failed, Some(outcome)) => State::Failed { outcome },
            (StateTag::Completed | StateTag::Failed, None) if expires_at <= now => State::Buried,
            (StateTag::Completed | StateTag::Failed, None) => return Err(missing()),
            (StateTag::InDoubt, _) => {
                State::InDoubt { doubt: doubt(self.doubt)?, request: self.request }
            }
            (StateTag::Released, _) => State::Released,
            (StateTag::Buried, _) => State::Buried,
        };
        Ok(Record {
            operation,
            fingerprint: Fingerprint::from_bytes(fingerprint),
            fence: stamp.fence,
            owner: stamp.owner,
            recovery,
            created_at,
            changed_at,
            expires_at,
            tombstone,
            state,
        })
    }

    /// The summary kept in this row; its outcome and request are not looked at.
    pub fn summary(&self) -> Result<Summary, Unreadable> {
        if self.format != i16::from(FORMAT) {
            return Err(unknown_format("format", i64::from(self.format)));
        }
        let operation = Operation::new(
            Tenant::parse(&self.tenant).map_err(|refusal| impossible("tenant", &refusal))?,
            Scope::parse(&self.scope).map_err(|refusal| impossible("scope", &refusal))?,
            Key::parse(&self.key).map_err(|refusal| impossible("key", &refusal))?,
        );
        if operation.id() != self.id {
            return Err(impossible("id", &self.id));
        }
        let stamp = Stamp {
            fence: Fence::from_stored(self.fence)
                .ok_or_else(|| impossible("fence", &self.fence))?,
            owner: Owner(self.owner),
            tag: state_tag(self.state)?,
            until: Timestamp::from_micros(self.until),
        };
        Ok(Summary {
            operation,
            stamp,
            recovery: recovery(self.recovery)?,
            created_at: Timestamp::from_micros(self.created_at),
            changed_at: Timestamp::from_micros(self.changed_at),
            expires_at: Timestamp::from_micros(self.expires_at),
        })
    }
}

/// The stored form of an outcome of this operation.
pub fn seal(id: OperationId, outcome: &Outcome) -> Sealed {
    let (head, body) = (head(outcome), stored_body(outcome));
    let digest = digest(id, &head, &body);
    Sealed { head, body, digest }
}

/// The outcome kept in this stored form.
pub fn open(id: OperationId, sealed: &Sealed) -> Result<Outcome, Unreadable> {
    let version = *sealed.head.first().ok_or(Unreadable::MalformedHead)?;
    if version != FORMAT {
        return Err(unknown_format("outcome", i64::from(version)));
    }
    if digest(id, &sealed.head, &sealed.body) != sealed.digest {
        return Err(Unreadable::Altered);
    }
    join(sealed.head.clone(), sealed.body.clone())
}

/// Version, status and headers of an outcome, and what there is to know about its body.
pub fn head(outcome: &Outcome) -> Bytes {
    let mut head = BytesMut::with_capacity(16 + outcome.weight().min(1 << 10));
    let (flags, len) = match outcome.body() {
        Body::Kept(_) => (0, None),
        Body::NotKept { len } => (BODY_NOT_KEPT, Some(*len)),
        Body::Sealed { len, .. } => (BODY_SEALED, Some(*len)),
    };
    head.put_u8(FORMAT);
    head.put_u8(flags);
    head.put_u16(outcome.status());
    put_len(&mut head, outcome.headers().len());
    for header in outcome.headers() {
        put_len(&mut head, header.name.len());
        head.put_slice(header.name.as_bytes());
        put_len(&mut head, header.value.len());
        head.put_slice(&header.value);
    }
    if let Some(len) = len {
        head.put_u64(len);
    }
    head.freeze()
}

/// What is stored as the body of an outcome.
pub fn stored_body(outcome: &Outcome) -> Bytes {
    match outcome.body() {
        Body::Kept(bytes) | Body::Sealed { bytes, .. } => bytes.clone(),
        Body::NotKept { .. } => Bytes::new(),
    }
}

/// The outcome with this [`head`] and this [`stored_body`], which nobody has altered.
pub fn join(mut head: Bytes, body: Bytes) -> Result<Outcome, Unreadable> {
    let version = take(&mut head, 1)?[0];
    if version != FORMAT {
        return Err(unknown_format("outcome", i64::from(version)));
    }
    let flags = take(&mut head, 1)?[0];
    let status = take_u16(&mut head)?;
    let count = take_u16(&mut head)?;
    let mut headers = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let len = take_u16(&mut head)?;
        let name = take(&mut head, usize::from(len))?;
        let len = take_u16(&mut head)?;
        let value = take(&mut head, usize::from(len))?;
        let name = str::from_utf8(&name).map_err(|_| Unreadable::MalformedHead)?.to_owned();
        headers.push(Header { name, value });
    }
    let has_bytes = !body.is_empty();
    let body = match flags {
        0 => Body::Kept(body),
        BODY_NOT_KEPT => Body::NotKept { len: take_u64(&mut head)? },
        BODY_SEALED => Body::Sealed { len: take_u64(&mut head)?, bytes: body },
        flags => return Err(impossible("outcome flags", &flags)),
    };
    if !head.is_empty() {
        return Err(Unreadable::MalformedHead);
    }
    if flags == BODY_NOT_KEPT && has_bytes {
        return Err(impossible("outcome body", &"one that was not kept"));
    }
    Outcome::new(status, headers, body).map_err(|refusal| impossible("outcome", &refusal))
}

const BODY_NOT_KEPT: u8 = 1;
const BODY_SEALED: u8 = 2;

fn digest(id: OperationId, head: &[u8], body: &[u8]) -> [u8; 16] {
    let mut hash = Sha256::new();
    hash.update(id.as_bytes());
    hash.update(u32::try_from(head.len()).unwrap_or(u32::MAX).to_be_bytes());
    hash.update(head);
    hash.update(body);
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.finalize()[..16]);
    digest
}

fn put_len(head: &mut BytesMut, len: usize) {
    let len = u16::try_from(len);
    assert!(len.is_ok(), "an outcome's limits keep every length below 64 KiB");
    head.put_u16(len.unwrap_or(u16::MAX));
}

fn take(rest: &mut Bytes, len: usize) -> Result<Bytes, Unreadable> {
    if rest.len() < len {
        return Err(Unreadable::MalformedHead);
    }
    Ok(rest.split_to(len))
}

fn take_u16(rest: &mut Bytes) -> Result<u16, Unreadable> {
    let bytes = take(rest, 2)?;
    Ok(u16::from(bytes[0]) << 8 | u16::from(bytes[1]))
}

fn take_u64(rest: &mut Bytes) -> Result<u64, Unreadable> {
    Ok(take(rest, 8)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn unknown_format(column: &'static str, found: i64) -> Unreadable {
    if found > i64::from(FORMAT) {
        Unreadable::TooNew { found }
    } else {
        impossible(column, &found)
    }
}

fn impossible(column: &'static str, value: &impl ToString) -> Unreadable {
    Unreadable::Impossible { column, value: value.to_string() }
}

fn state_tag(value: i16) -> Result<StateTag, Unreadable> {
    let known = StateTag::ALL.into_iter().find(|tag| *tag as i16 == value);
    known.ok_or_else(|| impossible("state", &value))
}

fn recovery(value: i16) -> Result<Recovery, Unreadable> {
    match value {
        1 => Ok(Recovery::Resend),
        2 => Ok(Recovery::Probe),
        3 => Ok(Recovery::Hold),
        _ => Err(impossible("recovery", &value)),
    }
}

fn doubt(value: i16) -> Result<Doubt, Unreadable> {
    match value {
        1 => Ok(Doubt::Unanswered),
        2 => Ok(Doubt::Interrupted),
        3 => Ok(Doubt::OwnerVanished),
        _ => Err(impossible("doubt", &value)),
    }
}
