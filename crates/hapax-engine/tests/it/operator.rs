//! What a person does with records, and what owners and engines make of it.

use std::time::Duration;

use hapax_core::{
    Deed, Fence, OperationId, Outcome, Phase, Policy, Reason, Recovery, StateTag, Store,
    store::{Filter, Page},
};
use hapax_engine::{
    Admission, Settled,
    operator::{Change, ChangeError, ExpectedAnswer, Operator, Order, Refusal, Resolution, Shown},
};
use tokio::time::advance;

use crate::world::{
    Cut, LEASE, RETENTION, Wire, World, ask, ask_with, outcome, paid, pay, permit, queued,
    replayed, settle_down,
};

fn id(key: &str) -> OperationId {
    ask(key).operation.id()
}

fn order(key: &str) -> Order {
    let reason = Reason::new("night shift", "the bank says so").unwrap();
    Order { id: id(key), seen: Fence::FIRST, even_if_running: false, reason }
}

/// The same order, though what was sent may be at work.
fn at_once(key: &str) -> Order {
    Order { even_if_running: true, ..order(key) }
}

fn refusal<T: std::fmt::Debug>(result: Result<T, ChangeError>) -> Refusal {
    match result {
        Err(ChangeError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

async fn notes(wire: &Wire, key: &str) -> Vec<(Deed, Phase)> {
    let notes = wire.notes(id(key), 100).await.unwrap().into_iter();
    let by_people = notes.filter(|noted| !noted.note.deed.is_of_hapax());
    by_people.map(|noted| (noted.note.deed, noted.note.phase)).collect()
}

async fn shown(wire: &Wire, key: &str) -> Shown {
    Operator::new(wire.clone()).show(id(key)).await.unwrap()
}

/// Leaves `key` in doubt: its owner vanished.
async fn doubt(world: &World, key: &str) -> (hapax_engine::Engine, Wire) {
    let (engine, wire) = world.process();
    let ended = hapax_core::AttemptEnd::Unanswered;
    permit(engine.begin(&ask(key)).await.unwrap()).settle(ended).await.unwrap();
    assert_eq!(world.record(key).await.unwrap().tag(), StateTag::InDoubt);
    (engine, wire)
}

#[tokio::test(start_paused = true)]
async fn a_doubt_resolved_as_completed_is_replayed_and_noted() {
    let world = World::new();
    let (engine, wire) = doubt(&world, "k").await;
    let resolution = Resolution::Completed { outcome: outcome("found at the bank") };
    let changed = Operator::new(wire.clone()).resolve(&order("k"), resolution).await.unwrap();
    assert_eq!(changed.state, StateTag::Completed);
    assert!(changed.noted.is_ok());
    let begun = engine.begin(&ask("k")).await.unwrap();
    assert_eq!(replayed(&begun), outcome("found at the bank"));
    let deed = Deed::ResolveCompleted;
    assert_eq!(notes(&wire, "k").await, [(deed, Phase::Intended), (deed, Phase::Done)]);
}

#[tokio::test(start_paused = true)]
async fn a_resolved_outcome_is_kept_for_a_whole_window_however_old_the_doubt() {
    let world = World::new();
    let (engine, wire) = doubt(&world, "k").await;
    advance(10 * RETENTION).await;
    let resolution = Resolution::Failed { outcome: Outcome::bare(402) };
    Operator::new(wire.clone()).resolve(&order("k"), resolution).await.unwrap();
    advance(RETENTION - Duration::from_secs(1)).await;
    let begun = engine.begin(&ask("k")).await.unwrap();
    assert_eq!(replayed(&begun), Outcome::bare(402));
}

#[tokio::test(start_paused = true)]
async fn a_released_key_runs_again() {
    for change in [Change::Release, Change::Resolve(Resolution::Released)] {
        let world = World::new();
        let (engine, wire) = doubt(&world, "k").await;
        let foreseen = change.leads_to();
        let changed = Operator::new(wire.clone()).carry_out(&at_once("k"), change).await.unwrap();
        assert_eq!((changed.state, foreseen), (StateTag::Released, StateTag::Released));
        let permit = permit(engine.begin(&ask("k")).await.unwrap());
        permit.settle(paid("again")).await.unwrap();
        assert_eq!(world.record("k").await.unwrap().fence, Fence::FIRST.next());
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_not_given_back_while_what_was_sent_may_be_at_work() {
    let world = World::new();
    let (_engine, wire) = doubt(&world, "k").await;
    let operator = Operator::new(wire.clone());
    for change in [Change::Release, Change::Resolve(Resolution::Released)] {
        let refused = operator.examine(&order("k"), &change).await.map(|_| ());
        assert!(
            matches!(refused, Err(ChangeError::Refused(Refusal::AtWork { .. }))),
            "{refused:?}"
        );
        let refused = refusal(operator.carry_out(&order("k"), change).await);
        assert!(matches!(refused, Refusal::AtWork { .. }), "{refused:?}");
    }
    assert!(notes(&wire, "k").await.is_empty(), "nothing was set out to be done");
    tokio::time::sleep(Policy::default().works_for()).await;
    operator.release(&order("k")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_finished_is_left_as_it_is() {
    let world = World::new();
    let (engine, wire) = world.process();
    pay(&engine, &ask("k"), "paid").await;
    let before = world.record("k").await;
    let refused = Operator::new(wire.clone()).release(&order("k")).await;
    assert_eq!(refusal(refused), Refusal::Finished { state: StateTag::Completed });
    assert_eq!(world.record("k").await, before);
    assert!(notes(&wire, "k").await.is_empty(), "nothing was set out to be done");
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_is_not_the_current_one_is_refused() {
    let world = World::new();
    let (_engine, wire) = doubt(&world, "k").await;
    let stale = Order { seen: Fence::FIRST.next(), ..order("k") };
    let refused = Operator::new(wire.clone()).release(&stale).await;
    let (seen, found) = (Fence::FIRST.next(), Fence::FIRST);
    assert_eq!(refusal(refused), Refusal::Changed { seen, found });
}

#[tokio::test(start_paused = true)]
async fn an_id_nobody_used_is_unknown() {
    let (_engine, wire) = World::new().process();
    let operator = Operator::new(wire.clone());
    assert_eq!(refusal(operator.release(&order("k")).await), Refusal::Unknown);
    assert!(!operator.show(id("k")).await.unwrap().is_known());
}

#[tokio::test(start_paused = true)]
async fn a_running_key_is_released_only_on_purpose_and_its_owner_then_loses() {
    let world = World::new();
    let (engine, wire) = world.process();
    let owner = permit(engine.begin(&ask("k")).await.unwrap());
    let operator = Operator::new(wire.clone());
    let refused = operator.release(&order("k")).await;
    assert_eq!(refusal(refused), Refusal::Running { lease_left: LEASE });
    let on_purpose = Order { even_if_running: true, ..order("k") };
    operator.release(&on_purpose).await.unwrap();
    assert!(matches!(owner.settle(paid("late")).await, Ok(Settled::Superseded(_))));
    let (other, _) = world.process();
    pay(&other, &ask("k"), "by another").await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_settles_first_keeps_its_answer() {
    let world = World::new();
    let (engine, _) = world.process();
    let owner = permit(engine.begin(&ask("k")).await.unwrap());
    let (_idle, wire) = world.process();
    wire.cut([Cut::Held]);
    let releasing = tokio::spawn({
        let (wire, on_purpose) = (wire.clone(), Order { even_if_running: true, ..order("k") });
        async move { Operator::new(wire.clone()).release(&on_purpose).await }
    });
    settle_down().await;
    owner.settle(paid("in time")).await.unwrap();
    wire.let_go();
    let refused = refusal(releasing.await.unwrap());
    assert_eq!(refused, Refusal::Finished { state: StateTag::Completed });
    assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("in time"));
    let (deed, phases) = (Deed::Release, [Phase::Intended, Phase::Refused]);
    assert_eq!(notes(&wire, "k").await, phases.map(|phase| (deed, phase)));
}

#[tokio::test(start_paused = true)]
async fn of_two_people_at_once_one_is_refused_and_both_are_noted() {
    let world = World::new();
    let (engine, wire) = doubt(&world, "k").await;
    wire.cut([Cut::Held]);
    let slow = tokio::spawn({
        let wire = wire.clone();
        async move { Operator::new(wire.clone()).release(&at_once("k")).await }
    });
    settle_down().await;
    let (_idle, quick) = world.process();
    let resolution = Resolution::Completed { outcome: outcome("first") };
    Operator::new(quick.clone()).resolve(&order("k"), resolution).await.unwrap();
    wire.let_go();
    let refused = refusal(slow.await.unwrap());
    assert_eq!(refused, Refusal::Finished { state: StateTag::Completed });
    let (release, resolve) = (Deed::Release, Deed::ResolveCompleted);
    let expected = [
        (release, Phase::Intended),
        (resolve, Phase::Intended),
        (resolve, Phase::Done),
        (release, Phase::Refused),
    ];
    assert_eq!(notes(&wire, "k").await, expected);
    assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("first"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_looked_up_and_a_lost_request_sent_again() {
    for cut in [Cut::AnswerLost, Cut::RequestLost] {
        let world = World::new();
        let (_engine, wire) = doubt(&world, "k").await;
        wire.cut([cut]);
        let resolution = Resolution::Completed { outcome: outcome("found") };
        Operator::new(wire.clone()).resolve(&order("k"), resolution).await.unwrap();
        assert_eq!(world.record("k").await.unwrap().outcome(), Some(&outcome("found")));
        assert_eq!(notes(&wire, "k").await.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_changes_nothing_and_that_is_noted() {
    let world = World::new();
    let (_engine, wire) = doubt(&world, "k").await;
    wire.cut([Cut::Refused]);
    let failed = Operator::new(wire.clone()).release(&at_once("k")).await;
    assert!(matches!(failed, Err(ChangeError::Store(_))), "{failed:?}");
    assert_eq!(world.record("k").await.unwrap().tag(), StateTag::InDoubt);
    let (deed, phases) = (Deed::Release, [Phase::Intended, Phase::Refused]);
    assert_eq!(notes(&wire, "k").await, phases.map(|phase| (deed, phase)));
}

#[tokio::test(start_paused = true)]
async fn what_is_explained_is_what_the_next_request_meets() {
    let world = World::new();
    let (engine, wire) = doubt(&world, "doubt").await;
    pay(&engine, &ask("paid"), "paid").await;
    let _owner = permit(engine.begin(&ask("busy")).await.unwrap());
    engine.begin(&queued(ask("queued"))).await.unwrap();
    for (key, answer, word) in [
        ("new", ExpectedAnswer::Runs, "Nothing is stored"),
        ("doubt", ExpectedAnswer::RefusedInDoubt, "never heard a complete answer"),
        ("paid", ExpectedAnswer::Replays, "status 201"),
        ("busy", ExpectedAnswer::Waits, "lease lasts another 30 s"),
        ("queued", ExpectedAnswer::Waits, "no worker has it yet"),
    ] {
        let explanation = shown(&wire, key).await.explain();
        assert_eq!(explanation.answer, answer, "{key}");
        assert!(explanation.because.contains(word), "{key}: {}", explanation.because);
        let another =
            if key == "new" { ExpectedAnswer::Runs } else { ExpectedAnswer::RefusedMismatch };
        assert_eq!(explanation.another, another, "{key}");
    }
    assert!(matches!(engine.begin(&ask("doubt")).await.unwrap(), Admission::InDoubt { .. }));
    tokio::time::sleep(2 * RETENTION).await;
    let explanation = shown(&wire, "paid").await.explain();
    assert_eq!(
        (explanation.answer, explanation.another),
        (ExpectedAnswer::Runs, ExpectedAnswer::Runs)
    );
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_key_is_explained_by_its_recovery() {
    let world = World::new();
    let (engine, wire) = world.process();
    for (key, recovery, answer) in [
        ("hold", Recovery::Hold, ExpectedAnswer::RefusedInDoubt),
        ("resend", Recovery::Resend, ExpectedAnswer::TakesOver),
        ("probe", Recovery::Probe, ExpectedAnswer::TakesOver),
    ] {
        let ask = ask_with(key, recovery, b"pay 100");
        let owner = permit(engine.begin(&ask).await.unwrap());
        let record = world.record(key).await.unwrap();
        let now = record.until().plus(Duration::from_secs(90));
        let shown = Shown {
            id: id(key),
            now,
            record: Some(record),
            notes: Vec::new(),
            history: Vec::new(),
        };
        let explanation = shown.explain();
        assert_eq!(explanation.answer, answer, "{key}");
        let because = &explanation.because;
        assert!(because.contains("its lease ended 1 min 30 s ago"), "{because}");
        assert!(because.contains(&format!("`{}`", recovery.as_str())), "{because}");
        drop(owner);
    }
    assert!(wire.notes(id("hold"), 1).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_timeline_tells_what_happened_in_order() {
    let world = World::new();
    let (_engine, wire) = doubt(&world, "k").await;
    advance(Duration::from_secs(60)).await;
    Operator::new(wire.clone()).release(&order("k")).await.unwrap();
    let timeline = shown(&wire, "k").await.timeline();
    assert!(timeline.is_sorted_by_key(|moment| moment.at));
    let whats: Vec<_> = timeline.iter().map(|moment| moment.what.as_str()).collect();
    assert_eq!(whats[0], "the key was first claimed");
    assert!(whats.contains(&"attempt 1 was given back"), "{whats:?}");
    let noted = "night shift: release of attempt 1 intended (the bank says so)";
    assert!(whats.contains(&noted), "{whats:?}");
    // The record tells only of its end; what led to it was noted.
    let doubted = whats.iter().find(|what| what.contains("was left in doubt")).unwrap();
    assert!(doubted.ends_with("it was sent, and no complete answer came back"), "{doubted}");
}

#[tokio::test(start_paused = true)]
async fn pages_say_where_the_next_one_starts() {
    let world = World::new();
    let (engine, wire) = world.process();
    for key in ["a", "b", "c"] {
        pay(&engine, &ask(key), "paid").await;
    }
    let operator = Operator::new(wire.clone());
    let (mut after, mut seen) = (None, 0);
    loop {
        let listing = operator.list(Filter::default(), Page { after, limit: 2 }).await.unwrap();
        seen += listing.listed.len();
        let Some(next) = listing.next else { break };
        after = Some(next);
    }
    assert_eq!(seen, 3);
}
