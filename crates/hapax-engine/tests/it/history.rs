//! What is noted of what happened to a key apart from the usual.

use std::time::Duration;

use hapax_core::{AnswerMeaning, AttemptEnd, Deed, Recovery, StateTag, Store};
use hapax_engine::operator::{MomentKind, Operator};
use tokio::time::sleep;

use crate::world::{LEASE, Wire, World, answered, ask, ask_with, paid, pay, permit, settle_down};

async fn history(wire: &Wire, key: &str) -> Vec<(Deed, String)> {
    settle_down().await;
    let shown = Operator::new(wire.clone()).show(ask(key).operation.id()).await.unwrap();
    let noted = shown.history.into_iter();
    noted.map(|noted| (noted.note.deed, noted.note.reason.why().to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn what_the_record_forgets_is_told_from_notes_and_the_usual_leaves_none() {
    let world = World::new();
    let (engine, wire) = world.process();
    let ask = ask_with("k", Recovery::Resend, b"pay 100");
    let first = permit(engine.begin(&ask).await.unwrap());
    let owner_before = first.attempt().owner.0;
    first.settle(AttemptEnd::Unanswered).await.unwrap();
    let mut second = permit(engine.begin(&ask).await.unwrap());
    let owner_after = second.attempt().owner.0;
    for said in ["it is at work", "it is at work", "it did not happen"] {
        second.note_probe(said);
    }
    assert!(second.next_attempt().await);
    let owner_then = second.attempt().owner.0;
    second.settle(paid("paid")).await.unwrap();
    let what = "it was sent, and no complete answer came back";
    let expected = [
        (
            Deed::LeftInDoubt,
            format!("attempt 1 (owner {owner_before:016x}) was left in doubt: {what}"),
        ),
        (
            Deed::TookOver,
            format!(
                "attempt 2 (owner {owner_after:016x}) took over from attempt 1 (owner {owner_before:016x}), \
                 which was in doubt"
            ),
        ),
        (Deed::Asked, "attempt 2 asked what became of it: it is at work".to_owned()),
        (Deed::Asked, "attempt 2 asked what became of it: it did not happen".to_owned()),
        (Deed::SentAgain, format!("it is sent once more, as attempt 3 (owner {owner_then:016x})")),
    ];
    assert_eq!(history(&wire, "k").await, expected);
    let shown = Operator::new(wire.clone()).show(ask.operation.id()).await.unwrap();
    let told = shown.timeline();
    let noted = told.iter().filter(|moment| moment.kind == MomentKind::History).count();
    assert_eq!((noted, shown.notes.len()), (5, 0), "{told:?}");
    pay(&engine, &crate::world::ask("usual"), "paid").await;
    assert!(history(&wire, "usual").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_vanished_and_a_key_that_was_given_back_are_noted() {
    let world = World::new();
    let (engine, wire) = world.process();
    for (key, recovery) in [("held", Recovery::Hold), ("resent", Recovery::Resend)] {
        let asked = ask_with(key, recovery, b"pay 100");
        std::mem::forget(permit(engine.begin(&asked).await.unwrap()));
    }
    permit(engine.begin(&ask("undone")).await.unwrap())
        .settle(answered(AnswerMeaning::NotDone))
        .await
        .unwrap();
    let undone = history(&wire, "undone").await;
    assert_eq!(undone[0].0, Deed::GaveBack);
    // Whoever sweeps is another process: the one before renews what it does not know to be forgotten.
    drop(engine);
    wire.hold();
    let (_sweeping, other) = world.process();
    sleep(4 * LEASE).await;
    let (held, resent) = (history(&other, "held").await, history(&other, "resent").await);
    assert_eq!((held.len(), held[0].0), (1, Deed::LeftInDoubt), "{held:?}");
    assert!(held[0].1.ends_with("its owner vanished"), "{held:?}");
    assert_eq!((resent.len(), resent[0].0), (1, Deed::GaveBack), "{resent:?}");
    assert!(resent[0].1.contains("its owner vanished"), "{resent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_takes_no_notes_delays_and_fails_nothing() {
    let world = World::new();
    let (engine, wire) = world.process();
    wire.take_no_notes();
    // More than wait for their turn.
    for number in 0..1100 {
        let owner = permit(engine.begin(&ask(&format!("k{number}"))).await.unwrap());
        let settled = owner.settle(AttemptEnd::Unanswered);
        tokio::time::timeout(Duration::from_secs(1), settled).await.unwrap().unwrap();
    }
    assert_eq!(world.record("k1099").await.unwrap().tag(), StateTag::InDoubt);
    let shown = Operator::new(wire.clone()).show(ask("k0").operation.id()).await.unwrap();
    assert!(shown.history.is_empty());
    assert!(shown.timeline().iter().any(|moment| moment.what.contains("was left in doubt")));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_tried_for_ever_is_noted_ever_more_rarely() {
    let world = World::new();
    let (engine, wire) = world.process();
    for _ in 0..200 {
        let owner = permit(engine.begin(&ask("k")).await.unwrap());
        owner.settle(answered(AnswerMeaning::NotDone)).await.unwrap();
        settle_down().await;
    }
    assert_eq!(world.record("k").await.unwrap().fence.get(), 200);
    let id = ask("k").operation.id();
    assert_eq!(wire.notes(id, 1000).await.unwrap().len(), 32 + 2, "and of attempts 64 and 128");
}
