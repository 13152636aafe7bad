//! The small parts of the store contract.

use bytes::Bytes;
use hapax_core::{
    Body, Decision, Doubt, Fence, Outcome, Owner, Recovery, Salt, StateTag, Step, StepName,
    StoreError, decide,
    store::{By, Claim, Entry, KeepStep, Purged, Renew, Settle, Settlement, Write, Written},
};

use crate::given::{CREATED, LEASE, arrival, operation, policy};

fn claim() -> Claim {
    let decision = decide(CREATED, &arrival("any"), None, &policy(Recovery::Hold));
    let Decision::Execute(claim) = decision else { panic!("it must execute") };
    claim
}

fn settle() -> Settle {
    let by = By::Owner { fence: Fence::FIRST, owner: Owner(1) };
    Settle { id: operation("k").id(), by, to: Settlement::Released, keep: LEASE }
}

fn renew() -> Renew {
    Renew { id: operation("k").id(), fence: Fence::FIRST, owner: Owner(1), lease: LEASE }
}

fn keep() -> KeepStep {
    let name = StepName::parse("charge").unwrap();
    let step = Step::new(1, name, 1, Bytes::from_static(b"receipt")).unwrap();
    let (id, fence, owner) = (operation("k").id(), Fence::FIRST, Owner(1));
    KeepStep { id, fence, owner, life: CREATED, step }
}

#[test]
fn a_write_weighs_what_it_carries() {
    let request = || Bytes::from_static(b"pay 100");
    let enters = |entry| Write::Claim(Claim { entry, ..claim() }).weight();
    assert_eq!(enters(Entry::Run { lease: LEASE, request: None }), 0);
    assert_eq!(enters(Entry::Run { lease: LEASE, request: Some(request()) }), 7);
    assert_eq!(enters(Entry::Queue { pick_up: LEASE, request: request() }), 7);

    let ends = |to| Write::Settle(Settle { to, ..settle() }).weight();
    assert_eq!(ends(Settlement::Released), 0);
    let outcome = Outcome::new(201, Vec::new(), Body::Kept(request())).unwrap();
    assert_eq!(ends(Settlement::Completed(outcome)), 7);
    assert_eq!(Write::Renew(renew()).weight(), 0);
    assert_eq!(Write::Step(keep()).weight(), 7);
}

#[test]
fn a_write_names_its_operation() {
    let id = operation("k").id();
    let claim = Claim { operation: operation("k"), ..claim() };
    let writes = [Write::Settle(settle()), Write::Renew(renew()), Write::Step(keep())];
    assert_eq!(writes.map(|write| write.id()), [id; 3]);
    assert_eq!(Write::Claim(claim).id(), id);
}

#[test]
fn an_answer_carries_the_clock_of_the_store() {
    assert_eq!(Written::Done { now: CREATED }.now(), CREATED);
    assert_eq!(Written::Refused { now: CREATED, record: None }.now(), CREATED);
}

#[test]
fn a_settlement_says_where_it_leads_and_what_it_stores() {
    let outcome = Outcome::bare(200);
    let settlements = [
        (Settlement::Completed(outcome.clone()), StateTag::Completed, Some(&outcome)),
        (Settlement::Failed(outcome.clone()), StateTag::Failed, Some(&outcome)),
        (Settlement::Released, StateTag::Released, None),
        (Settlement::InDoubt(Doubt::Unanswered), StateTag::InDoubt, None),
    ];
    for (settlement, tag, stored) in settlements {
        assert_eq!((settlement.tag(), settlement.outcome()), (tag, stored));
    }
}

#[test]
fn a_purge_adds_up_all_it_did() {
    assert_eq!(Purged { deleted: 1, buried: 20, timed_out: 300 }.total(), 321);
}

#[test]
fn errors_keep_their_cause() {
    use std::error::Error;

    let errors: [(StoreError, &str); 4] = [
        (StoreError::unavailable("cause"), "the store is unavailable; nothing was written"),
        (StoreError::unconfirmed("cause"), "the store did not confirm the write"),
        (StoreError::damaged("cause"), "the stored record is damaged"),
        (StoreError::too_new("cause"), "the stored record was written by a newer version"),
    ];
    for (error, line) in errors {
        assert_eq!(error.to_string(), line);
        assert_eq!(error.source().unwrap().to_string(), "cause");
    }
}

#[test]
fn a_salt_keeps_its_bytes() {
    assert_eq!(Salt::from_bytes([3; 32]).as_bytes(), &[3; 32]);
}
