//! The small parts of the store contract.

use bytes::Bytes;
use hapax_core::{
    Body, Decision, Doubt, Fence, Outcome, Owner, Recovery, Salt, StateTag, Step, StepName,
    StoreError, decide,
    store::{Batch, By, Claim, Entry, KeepStep, Purged, Renew, Settle, Settlement},
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
    let run = |request| Claim { entry: Entry::Run { lease: LEASE, request }, ..claim() };
    assert_eq!(run(None).weight(), 0);
    assert_eq!(run(Some(request())).weight(), 7);
    let queued = Entry::Queue { pick_up: LEASE, request: request() };
    assert_eq!(Claim { entry: queued, ..claim() }.weight(), 7);

    assert_eq!(settle().weight(), 0);
    let outcome = Outcome::new(201, Vec::new(), Body::Kept(request())).unwrap();
    assert_eq!(Settle { to: Settlement::Completed(outcome), ..settle() }.weight(), 7);
    assert_eq!(keep().weight(), 7);
}

#[test]
fn a_batch_is_empty_only_without_anything_in_it() {
    assert!(Batch::default().is_empty());
    assert!(!Batch { claims: vec![claim()], ..Batch::default() }.is_empty());
    assert!(!Batch { settles: vec![settle()], ..Batch::default() }.is_empty());
    assert!(!Batch { renews: vec![renew()], ..Batch::default() }.is_empty());
    assert!(!Batch { steps: vec![keep()], ..Batch::default() }.is_empty());
}

#[test]
fn a_batch_that_failed_failed_for_every_item() {
    let batch = Batch {
        claims: vec![claim()],
        settles: vec![settle(); 2],
        renews: vec![renew(); 3],
        steps: vec![keep(); 4],
    };
    assert_eq!(batch.len(), 10);
    let committed = batch.all_failed(&StoreError::unavailable("down"));
    let lengths = [committed.claims.len(), committed.settles.len(), committed.renews.len()];
    assert_eq!((lengths, committed.steps.len()), ([1, 2, 3], 4));
    assert!(matches!(committed.claims[0], Err(StoreError::Unavailable(_))));
    assert!(matches!(committed.settles[1], Err(StoreError::Unavailable(_))));
    assert!(matches!(committed.renews[2], Err(StoreError::Unavailable(_))));
    assert!(matches!(committed.steps[3], Err(StoreError::Unavailable(_))));
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
