//! Who may pursue an operation, and whose word counts.

use std::time::Duration;

use bytes::Bytes;
use hapax_client::journal::{
    Begin, EntryState, EntryStateTag, OwnerWriteResult, PursuitAdmission, PursuitEnd, Sent, TakeUp,
};
use hapax_core::{Body, Header, Key, Outcome};

use super::bench::{Bench, DEADLINE, granted, name, progress, request, wish};

const LEASE: Duration = Duration::from_secs(10);

pub(crate) fn answer(status: u16) -> Outcome {
    let header = Header { name: "x-id".to_owned(), value: Bytes::from_static(b"7") };
    let body = Body::Kept(Bytes::from_static(b"{\"id\":7}"));
    Outcome::new(status, vec![header], body).expect("within limits")
}

fn unknown() -> PursuitEnd {
    PursuitEnd::Unknown { reason: "nobody answered".to_owned() }
}

fn gave_up() -> PursuitEnd {
    PursuitEnd::GaveUp { reason: "nothing listens there".to_owned() }
}

fn lost_to(kept: OwnerWriteResult) -> EntryStateTag {
    match kept {
        OwnerWriteResult::Lost { found: Some(found) } => found.state.tag(),
        other @ (OwnerWriteResult::Done | OwnerWriteResult::Lost { found: None }) => {
            panic!("{other:?}")
        }
    }
}

#[tokio::test]
async fn what_was_begun_is_found_whole() {
    let bench = Bench::new();
    let journal = bench.journal();
    let granted = granted(&journal, wish("charge", "k-1")).await;
    assert_eq!((granted.found, granted.attempts, granted.sent), (None, 0, None));
    assert_eq!(granted.left, DEADLINE);
    drop(journal);

    let found = bench.journal().find(&name("charge")).await.expect("read").expect("there");
    assert_eq!(found.request, request("{}"));
    assert_eq!(found.key.as_str(), "k-1");
    assert_eq!(found.state, EntryState::Pending { lease: Some(LEASE) });
    assert_eq!((found.created, found.sent), (bench.now(), Some(bench.now())));
}

#[tokio::test]
async fn an_operation_somebody_pursues_is_held_until_the_lease_ends() {
    let bench = Bench::new();
    let (first, second) = (bench.journal(), bench.journal());
    let before = granted(&first, wish("charge", "k-1")).await;
    bench.pass(LEASE - Duration::from_millis(1));
    let held = second.begin(wish("charge", "k-2")).await.expect("answered");
    assert_eq!(held, PursuitAdmission::Held { ends_in: Duration::from_millis(1) });

    bench.pass(Duration::from_millis(1));
    let after = granted(&second, wish("charge", "k-2")).await;
    assert_eq!(after.found, Some(EntryStateTag::Pending));
    assert_eq!(after.hold.key().as_str(), "k-1", "the key is the first one's for ever");
    assert!(after.hold.fence() > before.hold.fence());
    assert_eq!(after.sent, Some(LEASE), "whoever died may have sent it");
}

#[tokio::test]
async fn a_lease_that_is_renewed_goes_on() {
    let bench = Bench::new();
    let (first, second) = (bench.journal(), bench.journal());
    let granted = granted(&first, wish("charge", "k-1")).await;
    for attempts in 1..=5 {
        bench.pass(LEASE / 2);
        let kept = first.renew(&granted.hold, progress(attempts)).await.expect("answered");
        assert_eq!(kept, OwnerWriteResult::Done);
        let held = second.take_up(name("charge"), TakeUp::Pending).await.expect("answered");
        assert_eq!(held, Some(PursuitAdmission::Held { ends_in: LEASE }));
    }
    let found = second.find(&name("charge")).await.expect("read").expect("there");
    assert_eq!((found.attempts, found.noted.left), (5, DEADLINE / 2));
}

#[tokio::test]
async fn what_is_released_is_free_at_once_and_keeps_what_was_left() {
    let bench = Bench::new();
    let (first, second) = (bench.journal(), bench.journal());
    let hold = granted(&first, wish("charge", "k-1")).await.hold;
    let kept = first.release(&hold, progress(3), Sent::Maybe).await.expect("answered");
    assert_eq!(kept, OwnerWriteResult::Done);
    bench.pass(DEADLINE / 4);
    let taken = second.take_up(name("charge"), TakeUp::Pending).await.expect("answered");
    let Some(PursuitAdmission::Granted(taken)) = taken else { panic!("{taken:?}") };
    assert_eq!((taken.attempts, taken.left), (3, DEADLINE / 4));
    assert_eq!(taken.sent, Some(DEADLINE / 4));
    assert_eq!(taken.request, request("{}"));
}

#[tokio::test]
async fn what_was_released_before_anything_was_sent_raises_no_doubt() {
    let bench = Bench::new();
    let journal = bench.journal();
    let hold = granted(&journal, wish("charge", "k-1")).await.hold;
    journal.release(&hold, progress(1), Sent::Nothing).await.expect("answered");
    let again = granted(&journal, wish("charge", "k-2")).await;
    assert_eq!((again.sent, again.hold.key().as_str()), (None, "k-1"));
}

#[tokio::test]
async fn a_stale_owner_that_knows_nothing_changes_nothing() {
    let bench = Bench::new();
    let (first, second) = (bench.journal(), bench.journal());
    let stale = granted(&first, wish("charge", "k-1")).await.hold;
    bench.pass(LEASE);
    let current = granted(&second, wish("charge", "k-2")).await.hold;
    let before = second.find(&name("charge")).await.expect("read");

    for end in [unknown(), gave_up()] {
        let kept = first.settle(&stale, 9, end).await.expect("answered");
        assert_eq!(lost_to(kept), EntryStateTag::Pending);
    }
    let kept = first.renew(&stale, progress(9)).await.expect("answered");
    assert_eq!(lost_to(kept), EntryStateTag::Pending);
    let kept = first.release(&stale, progress(9), Sent::Nothing).await.expect("answered");
    assert_eq!(lost_to(kept), EntryStateTag::Pending);
    assert_eq!(second.find(&name("charge")).await.expect("read"), before);
    assert_eq!(
        second.settle(&current, 2, unknown()).await.expect("answered"),
        OwnerWriteResult::Done
    );
}

#[tokio::test]
async fn a_stale_owners_answer_is_kept_while_there_is_no_other() {
    let bench = Bench::new();
    let (first, second) = (bench.journal(), bench.journal());
    let stale = granted(&first, wish("charge", "k-1")).await.hold;
    bench.pass(LEASE);
    let current = granted(&second, wish("charge", "k-2")).await.hold;
    let kept = first.settle(&stale, 1, PursuitEnd::Done(answer(201))).await.expect("answered");
    assert_eq!(kept, OwnerWriteResult::Done);

    let kept = second.renew(&current, progress(1)).await.expect("answered");
    assert_eq!(lost_to(kept), EntryStateTag::Done);
    let kept =
        second.settle(&current, 2, PursuitEnd::Refused(answer(402))).await.expect("answered");
    assert_eq!(lost_to(kept), EntryStateTag::Done);
    let found = second.find(&name("charge")).await.expect("read").expect("there");
    assert_eq!(found.state, EntryState::Done { answer: answer(201), ended: bench.now() });
}

#[tokio::test]
async fn a_stale_owners_no_is_not_believed_as_somebody_else_may_have_succeeded() {
    for end in [None, Some(unknown()), Some(gave_up())] {
        let bench = Bench::new();
        let (first, second) = (bench.journal(), bench.journal());
        let stale = granted(&first, wish("charge", "k-1")).await.hold;
        bench.pass(LEASE);
        let current = granted(&second, wish("charge", "k-2")).await.hold;
        if let Some(end) = end {
            second.settle(&current, 2, end).await.expect("answered");
        }
        let before = second.find(&name("charge")).await.expect("read");
        let kept =
            first.settle(&stale, 1, PursuitEnd::Refused(answer(401))).await.expect("answered");
        assert!(matches!(kept, OwnerWriteResult::Lost { .. }), "{kept:?}");
        assert_eq!(second.find(&name("charge")).await.expect("read"), before);
    }
}

#[tokio::test]
async fn an_answer_replaces_what_was_unknown() {
    let bench = Bench::new();
    let (first, second) = (bench.journal(), bench.journal());
    let stale = granted(&first, wish("charge", "k-1")).await.hold;
    bench.pass(LEASE);
    let current = granted(&second, wish("charge", "k-2")).await.hold;
    second.settle(&current, 2, unknown()).await.expect("answered");
    let kept = first.settle(&stale, 1, PursuitEnd::Done(answer(201))).await.expect("answered");
    assert_eq!(kept, OwnerWriteResult::Done);
    let found = first.find(&name("charge")).await.expect("read").expect("there");
    assert_eq!((found.state.tag(), found.attempts), (EntryStateTag::Done, 2));
}

#[tokio::test]
async fn the_same_end_may_be_said_twice() {
    let bench = Bench::new();
    let journal = bench.journal();
    for (text, end) in [
        ("a", PursuitEnd::Done(answer(201))),
        ("b", PursuitEnd::Refused(answer(402))),
        ("c", unknown()),
        ("d", gave_up()),
    ] {
        let hold = granted(&journal, wish(text, "k")).await.hold;
        for _ in 0..2 {
            let kept = journal.settle(&hold, 1, end.clone()).await.expect("answered");
            assert_eq!(kept, OwnerWriteResult::Done, "{end:?}");
        }
    }
}

#[tokio::test]
async fn whoever_was_not_told_of_the_grant_is_granted_it_again() {
    let bench = Bench::new();
    let journal = bench.journal();
    let asked = wish("charge", "k-1");
    let first = granted(&journal, asked.clone()).await;
    let again = granted(&journal, asked).await;
    assert_eq!(again.hold, first.hold);
    let other = journal.begin(wish("charge", "k-2")).await.expect("answered");
    assert!(matches!(other, PursuitAdmission::Held { .. }), "{other:?}");
}

#[tokio::test]
async fn a_name_with_an_answer_is_answered_and_never_sent_again() {
    let bench = Bench::new();
    let journal = bench.journal();
    for (text, end) in
        [("done", PursuitEnd::Done(answer(201))), ("refused", PursuitEnd::Refused(answer(402)))]
    {
        let hold = granted(&journal, wish(text, "k-1")).await.hold;
        journal.settle(&hold, 1, end).await.expect("answered");
        let begun = journal.begin(wish(text, "k-2")).await.expect("answered");
        assert!(matches!(begun, PursuitAdmission::Ended(_)), "{begun:?}");
        for wish in [TakeUp::Pending, TakeUp::Unanswered { deadline: DEADLINE }] {
            let taken = journal.take_up(name(text), wish).await.expect("answered");
            assert!(matches!(taken, Some(PursuitAdmission::Ended(_))), "{taken:?}");
        }
    }
}

#[tokio::test]
async fn what_ended_without_an_answer_is_asked_again_only_by_wish() {
    let bench = Bench::new();
    let journal = bench.journal();
    for (text, end, sent) in
        [("unknown", unknown(), Some(Duration::ZERO)), ("gave up", gave_up(), None)]
    {
        let hold = granted(&journal, wish(text, "k-1")).await.hold;
        journal.settle(&hold, 4, end).await.expect("answered");
        let taken = journal.take_up(name(text), TakeUp::Pending).await.expect("answered");
        assert!(matches!(taken, Some(PursuitAdmission::Ended(_))), "{taken:?}");
        let again = granted(&journal, wish(text, "k-2")).await;
        assert_eq!(again.hold.key().as_str(), "k-1");
        assert_eq!((again.attempts, again.left, again.sent), (4, DEADLINE, sent), "{text}");
    }
}

#[tokio::test]
async fn a_name_belongs_to_its_request() {
    let bench = Bench::new();
    let journal = bench.journal();
    granted(&journal, wish("charge", "k-1")).await;
    let key = Key::parse("k-2").expect("a key");
    let other = Begin::new(name("charge"), key, request("{\"amount\":2}"), DEADLINE);
    assert_eq!(journal.begin(other).await.expect("answered"), PursuitAdmission::Mismatch);
}

#[tokio::test]
async fn an_answer_never_goes_to_another_operation_that_got_the_name() {
    use hapax_client::journal::{Force, Forgotten};

    let bench = Bench::new();
    let journal = bench.journal();
    let old = granted(&journal, wish("charge", "k-1")).await.hold;
    let forgotten = journal.forget(&name("charge"), Force::Yes).await.expect("answered");
    assert_eq!(forgotten, Forgotten::Done);
    let kept = journal.settle(&old, 1, PursuitEnd::Done(answer(201))).await.expect("answered");
    assert_eq!(kept, OwnerWriteResult::Lost { found: None });
    granted(&journal, wish("charge", "k-2")).await;
    let kept = journal.settle(&old, 1, PursuitEnd::Done(answer(201))).await.expect("answered");
    assert_eq!(lost_to(kept), EntryStateTag::Pending);
}
