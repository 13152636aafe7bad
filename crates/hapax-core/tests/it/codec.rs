//! How records are stored: everything comes back, and nothing else is believed.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Body, Doubt, Fence, Fingerprint, Header, Outcome, Owner, Record, Recovery, State, StateTag,
    StoreError, Timestamp, apply,
    codec::{self, FORMAT, Row, Sealed, Unreadable},
};
use proptest::{collection::vec, prelude::*};

use crate::given::{CREATED, RECOVERIES, WINDOW, operation, record};

fn rich() -> Outcome {
    let headers = vec![
        Header { name: "content-type".into(), value: Bytes::from_static(b"text/plain") },
        Header { name: "x".into(), value: Bytes::from_static(b"\xff\x00") },
    ];
    Outcome::new(201, headers, Body::Kept(Bytes::from_static(b"the body"))).unwrap()
}

fn sealed(outcome: &Outcome) -> Sealed {
    codec::seal(operation("k").id(), outcome)
}

fn opened(sealed: &Sealed) -> Result<Outcome, Unreadable> {
    codec::open(operation("k").id(), sealed)
}

/// The stored form of this head, with a digest that matches it.
fn resealed(head: &[u8], body: &[u8]) -> Sealed {
    use sha2::{Digest, Sha256};

    let mut hash = Sha256::new();
    hash.update(operation("k").id().as_bytes());
    hash.update(u32::try_from(head.len()).unwrap().to_be_bytes());
    hash.update(head);
    hash.update(body);
    let digest = hash.finalize()[..16].try_into().unwrap();
    Sealed { head: Bytes::copy_from_slice(head), body: Bytes::copy_from_slice(body), digest }
}

proptest! {
    #[test]
    fn every_outcome_comes_back(
        status: u16,
        headers in vec(("[a-z-]{0,40}", vec(any::<u8>(), 0..200)), 0..20),
        body in prop_oneof![
            vec(any::<u8>(), 0..2000).prop_map(|bytes| Body::Kept(bytes.into())),
            any::<u64>().prop_map(|len| Body::NotKept { len }),
            (any::<u64>(), vec(any::<u8>(), 0..2000))
                .prop_map(|(len, bytes)| Body::Sealed { len, bytes: bytes.into() }),
        ],
    ) {
        let headers = headers.into_iter().map(|(name, value)| Header { name, value: value.into() });
        let outcome = Outcome::new(status, headers.collect(), body).unwrap();
        prop_assert_eq!(opened(&sealed(&outcome)), Ok(outcome));
    }

    #[test]
    fn every_record_comes_back(
        tag in prop::sample::select(StateTag::ALL.to_vec()),
        recovery in prop::sample::select(RECOVERIES.to_vec()),
        doubt in prop::sample::select(
            vec![Doubt::Unanswered, Doubt::Interrupted, Doubt::OwnerVanished]
        ),
        fence in 1_i64..,
        owner: i64,
        instants: [i64; 4],
        tombstone in 0_i64..,
        request in prop::option::of(vec(any::<u8>(), 0..100)),
        fingerprint in prop::array::uniform32(any::<u8>()),
    ) {
        let [until, created_at, changed_at, expires_at] = instants.map(Timestamp::from_micros);
        let request = request.map(Bytes::from);
        let state = match tag {
            StateTag::Pending => {
                State::Pending { pick_up_by: until, request: request.unwrap_or_default() }
            }
            StateTag::Running => State::Running { lease_until: until, request },
            StateTag::Completed => State::Completed { outcome: rich() },
            StateTag::Failed => State::Failed { outcome: rich() },
            StateTag::InDoubt => State::InDoubt { doubt, request },
            StateTag::Released => State::Released,
            StateTag::Buried => State::Buried,
        };
        let mut bytes = [9; Fingerprint::BYTES];
        bytes[..32].copy_from_slice(&fingerprint);
        let record = Record {
            operation: operation("k"),
            fingerprint: Fingerprint::from_bytes(bytes),
            fence: Fence::from_stored(fence).unwrap(),
            owner: Owner(owner),
            recovery,
            created_at,
            changed_at,
            expires_at,
            tombstone: Duration::from_micros(tombstone.unsigned_abs()),
            state,
        };
        let row = Row::seal(&record);
        prop_assert_eq!(row.summary(), Ok(apply::summary(&record)));
        prop_assert_eq!(row.open(CREATED), Ok(record));
    }

    #[test]
    fn bytes_nobody_wrote_never_open_as_something_else(head in vec(any::<u8>(), 0..60)) {
        if let Ok(outcome) = opened(&resealed(&head, b"")) {
            prop_assert_eq!(sealed(&outcome).head, head);
        }
    }
}

#[test]
fn the_stored_form_is_fixed() {
    let row = Row::seal(&record(StateTag::Completed, Recovery::Hold));
    assert_eq!((row.format, row.state, row.recovery, row.doubt), (1, 3, 3, 0));
    assert_eq!(row.doubt, 0);
    let doubted = Row::seal(&record(StateTag::InDoubt, Recovery::Resend));
    assert_eq!((doubted.state, doubted.recovery, doubted.doubt), (5, 1, 2));
    let head = sealed(&rich()).head;
    let expected =
        b"\x01\x00\x00\xc9\x00\x02\x00\x0ccontent-type\x00\x0atext/plain\x00\x01x\x00\x02\xff\x00";
    assert_eq!(head.as_ref(), expected);
    let not_kept = Outcome::new(200, Vec::new(), Body::NotKept { len: 258 }).unwrap();
    let expected = b"\x01\x01\x00\xc8\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02";
    assert_eq!(sealed(&not_kept).head.as_ref(), expected);
    assert!(sealed(&not_kept).body.is_empty());
}

#[test]
fn an_outcome_is_bound_to_its_operation_its_head_and_its_body() {
    let whole = sealed(&rich());
    assert_eq!(codec::open(operation("other").id(), &whole), Err(Unreadable::Altered));
    for at in 1..whole.head.len() {
        let mut head = whole.head.to_vec();
        head[at] ^= 1;
        let altered = Sealed { head: head.into(), ..whole.clone() };
        assert_eq!(opened(&altered), Err(Unreadable::Altered));
    }
    for at in 0..whole.body.len() {
        let mut body = whole.body.to_vec();
        body[at] ^= 1;
        let altered = Sealed { body: body.into(), ..whole.clone() };
        assert_eq!(opened(&altered), Err(Unreadable::Altered));
    }
    // A byte moved from the end of the head to the start of the body is noticed too.
    let (head, last) = whole.head.split_at(whole.head.len() - 1);
    let body = [last, &whole.body].concat();
    let moved = Sealed { head: Bytes::copy_from_slice(head), body: body.into(), ..whole.clone() };
    assert_eq!(opened(&moved), Err(Unreadable::Altered));
}

#[test]
fn a_head_that_ends_early_is_malformed_wherever_it_ends() {
    let not_kept = Outcome::new(200, rich().headers().to_vec(), Body::NotKept { len: 9 }).unwrap();
    let encrypted = Body::Sealed { len: 9, bytes: Bytes::from_static(b"the body") };
    let encrypted = Outcome::new(200, rich().headers().to_vec(), encrypted).unwrap();
    for outcome in [rich(), not_kept, encrypted] {
        let head = sealed(&outcome).head;
        for len in 0..head.len() {
            let cut = opened(&resealed(&head[..len], b"the body"));
            assert_eq!(cut, Err(Unreadable::MalformedHead), "cut at {len}");
        }
        let longer = [&head[..], b"\x00"].concat();
        assert_eq!(opened(&resealed(&longer, b"the body")), Err(Unreadable::MalformedHead));
    }
}

#[test]
fn a_head_that_holds_what_was_never_written_is_refused() {
    let with = |at: usize, value: u8| {
        let mut head = sealed(&rich()).head.to_vec();
        head[at] = value;
        opened(&resealed(&head, b"the body"))
    };
    assert_eq!(with(0, FORMAT + 1), Err(Unreadable::TooNew { found: 2 }));
    let impossible =
        |column, value: &str| Err(Unreadable::Impossible { column, value: value.into() });
    assert_eq!(with(0, 0), impossible("outcome", "0"));
    assert_eq!(with(1, 3), impossible("outcome flags", "3"));
    assert_eq!(with(8, 0xff), Err(Unreadable::MalformedHead), "a name that is not text");
    let not_kept = Outcome::new(200, Vec::new(), Body::NotKept { len: 8 }).unwrap();
    let kept_after_all = opened(&resealed(&sealed(&not_kept).head, b"the body"));
    assert_eq!(kept_after_all, impossible("outcome body", "one that was not kept"));
    let too_many = [&b"\x01\x00\x00\xc8\x00\x81"[..], &b"\x00\x01n\x00\x00".repeat(129)].concat();
    let refused = opened(&resealed(&too_many, b""));
    assert!(
        matches!(refused, Err(Unreadable::Impossible { column: "outcome", .. })),
        "{refused:?}"
    );
}

#[test]
fn a_version_is_known_before_its_digest_is_checked() {
    let mut newer = sealed(&rich());
    let mut head = newer.head.to_vec();
    head[0] = FORMAT + 1;
    newer.head = head.into();
    assert_eq!(opened(&newer), Err(Unreadable::TooNew { found: 2 }));
}

#[track_caller]
fn refused(tag: StateTag, change: impl FnOnce(&mut Row), expected: &Unreadable) {
    let mut row = Row::seal(&record(tag, Recovery::Hold));
    change(&mut row);
    assert_eq!(row.open(CREATED).as_ref(), Err(expected));
}

#[test]
fn a_row_that_holds_what_was_never_written_is_refused() {
    let impossible =
        |column, value: &str| Unreadable::Impossible { column, value: value.to_owned() };
    let tag = StateTag::Running;
    refused(tag, |row| row.format = 2, &Unreadable::TooNew { found: 2 });
    refused(tag, |row| row.format = 0, &impossible("format", "0"));
    refused(tag, |row| row.format = -1, &impossible("format", "-1"));
    refused(tag, |row| row.state = 0, &impossible("state", "0"));
    refused(tag, |row| row.state = 8, &impossible("state", "8"));
    refused(tag, |row| row.recovery = 0, &impossible("recovery", "0"));
    refused(tag, |row| row.recovery = 4, &impossible("recovery", "4"));
    refused(tag, |row| row.fence = 0, &impossible("fence", "0"));
    refused(tag, |row| row.tombstone = -1, &impossible("tombstone", "-1"));
    refused(tag, |row| row.fingerprint.truncate(35), &impossible("fingerprint", "35"));
    refused(tag, |row| row.fingerprint.push(0), &impossible("fingerprint", "37"));
    refused(StateTag::InDoubt, |row| row.doubt = 0, &impossible("doubt", "0"));
    refused(StateTag::InDoubt, |row| row.doubt = 4, &impossible("doubt", "4"));
    refused(StateTag::Pending, |row| row.request = None, &impossible("request", "nothing"));
    refused(tag, |row| row.id = operation("other").id(), &{
        impossible("id", &operation("other").id().to_string())
    });
    let empty = |max: usize| format!("it is empty; send 1 to {max} visible ASCII characters");
    refused(tag, |row| row.tenant.clear(), &impossible("tenant", &empty(255)));
    refused(tag, |row| row.scope.clear(), &impossible("scope", &empty(1024)));
    refused(tag, |row| row.key.clear(), &impossible("key", &empty(255)));
}

#[test]
fn a_row_under_another_operations_names_is_refused() {
    let mut row = Row::seal(&record(StateTag::Running, Recovery::Hold));
    row.key = "other".into();
    assert!(matches!(row.open(CREATED), Err(Unreadable::Impossible { column: "id", .. })));
}

#[test]
fn a_missing_outcome_is_damage_before_expiry_and_a_tombstone_after() {
    let expires_at = CREATED.plus(WINDOW);
    for tag in [StateTag::Completed, StateTag::Failed] {
        let mut row = Row::seal(&record(tag, Recovery::Hold));
        row.outcome = None;
        let missing = Unreadable::Impossible { column: "outcome", value: "nothing".into() };
        let before = expires_at.minus(Duration::from_micros(1));
        assert_eq!(row.clone().open(before), Err(missing));
        assert_eq!(row.open(expires_at).unwrap().state, State::Buried);
    }
}

#[test]
fn an_outcome_left_behind_in_another_state_is_not_looked_at() {
    for tag in [StateTag::Running, StateTag::Released, StateTag::InDoubt, StateTag::Buried] {
        let expected = record(tag, Recovery::Hold);
        let mut row = Row::seal(&expected);
        row.outcome = Some(Sealed { digest: [0; 16], ..sealed(&rich()) });
        assert_eq!(row.open(CREATED), Ok(expected));
    }
}

#[test]
fn what_is_unreadable_is_damage_unless_it_is_newer() {
    let newer = StoreError::from(Unreadable::TooNew { found: 2 });
    assert!(matches!(newer, StoreError::TooNew(_)));
    let impossible = Unreadable::Impossible { column: "state", value: "9".into() };
    for unreadable in [Unreadable::Altered, Unreadable::MalformedHead, impossible] {
        assert!(matches!(StoreError::from(unreadable), StoreError::Damaged(_)));
    }
}
