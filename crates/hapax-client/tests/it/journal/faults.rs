//! A failure at every place leaves a journal that says the truth.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use hapax_client::journal::{
    EntryStateTag, Force, Forgotten, Journal, JournalClock, JournalEncryption, JournalError,
    JournalOptions, OpenError, OwnerWriteResult, PLACES, PursuitAdmission, PursuitEnd, Sent,
    TakeUp,
};
use hapax_core::{Faults, Injected, Outcome};

use super::bench::{Bench, granted, master, name, progress, wish};

/// Fails once at this place, after it was armed.
fn once_at(place: &'static str) -> (Faults, Arc<AtomicBool>) {
    let armed = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&armed);
    let faults = Faults::new(move |at| {
        if at == place && own.swap(false, SeqCst) { Err(Injected { place }) } else { Ok(()) }
    });
    (faults, armed)
}

fn writes() -> impl Iterator<Item = &'static str> {
    PLACES.iter().copied().filter(|place| !place.starts_with("journal.make"))
}

/// Every such place, in a journal in the clear and in one that is encrypted.
fn everywhere() -> impl Iterator<Item = (&'static str, Bench)> {
    writes().flat_map(|place| Bench::both().map(|bench| (place, bench)))
}

/// Says what the failure at this place means: whether it was written after all.
fn check(place: &str, error: &JournalError) -> bool {
    let unconfirmed = place == "journal.write.after_commit";
    let as_expected = if unconfirmed {
        matches!(error, JournalError::Unconfirmed(_))
    } else {
        matches!(error, JournalError::Unavailable(_))
    };
    assert!(as_expected, "{place}: {error:?}");
    unconfirmed
}

#[tokio::test]
async fn a_begin_that_failed_is_there_whole_or_not_at_all() {
    for (place, bench) in everywhere().filter(|(place, _)| *place != "journal.take_up") {
        let (faults, armed) = once_at(place);
        let options = JournalOptions { faults, ..bench.options() };
        let journal = Journal::open(bench.path(), options).expect("it opens");
        armed.store(true, SeqCst);
        let asked = wish("charge", "k-1");
        let begun = journal.begin(asked.clone()).await;
        if let Err(error) = &begun {
            let written = check(place, error);
            let found = bench.journal().find(&name("charge")).await.expect("read");
            assert_eq!(found.is_some(), written, "{place}");
        }
        armed.store(false, SeqCst);
        let hold = granted(&journal, asked).await.hold;
        let kept = journal.settle(&hold, 1, PursuitEnd::Done(Outcome::bare(201))).await;
        assert_eq!(kept.expect("answered"), OwnerWriteResult::Done, "{place}");
    }
}

#[tokio::test]
async fn an_end_that_failed_is_there_whole_or_not_at_all() {
    for (place, bench) in everywhere() {
        let (faults, armed) = once_at(place);
        let options = JournalOptions { faults, ..bench.options() };
        let journal = Journal::open(bench.path(), options).expect("it opens");
        let hold = granted(&journal, wish("charge", "k-1")).await.hold;
        armed.store(true, SeqCst);
        let end = PursuitEnd::Done(Outcome::bare(201));
        if let Err(error) = journal.settle(&hold, 1, end.clone()).await {
            let expected =
                if check(place, &error) { EntryStateTag::Done } else { EntryStateTag::Pending };
            let found = bench.journal().find(&name("charge")).await.expect("read").expect("there");
            assert_eq!(found.state.tag(), expected, "{place}");
        }
        armed.store(false, SeqCst);
        assert_eq!(
            journal.settle(&hold, 1, end).await.expect("answered"),
            OwnerWriteResult::Done,
            "{place}"
        );
    }
}

#[tokio::test]
async fn whatever_else_failed_can_be_asked_for_again() {
    for (place, bench) in everywhere() {
        let (faults, armed) = once_at(place);
        let options = JournalOptions { faults, ..bench.options() };
        let journal = Journal::open_inline(bench.path(), options).expect("it opens");
        let hold = granted(&journal, wish("charge", "k-1")).await.hold;

        armed.store(true, SeqCst);
        let renewed = journal.renew(&hold, progress(1)).await;
        armed.store(true, SeqCst);
        let released = journal.release(&hold, progress(1), Sent::Maybe).await;
        for error in renewed.err().into_iter().chain(released.err()) {
            check(place, &error);
        }
        armed.store(false, SeqCst);
        journal.release(&hold, progress(1), Sent::Maybe).await.expect("answered");

        armed.store(true, SeqCst);
        let taken = journal.take_up(name("charge"), TakeUp::Pending).await;
        armed.store(false, SeqCst);
        if let Err(error) = taken {
            let again = journal.take_up(name("charge"), TakeUp::Pending).await.expect("answered");
            // Nobody knows that it was granted, so its lease has to end first.
            let held = matches!(again, Some(PursuitAdmission::Held { .. }));
            assert_eq!(held, check(place, &error), "{place}: {again:?}");
        }

        armed.store(true, SeqCst);
        let forgotten = journal.forget(&name("charge"), Force::Yes).await;
        armed.store(false, SeqCst);
        let gone = match forgotten {
            Ok(forgotten) => forgotten == Forgotten::Done,
            Err(error) => check(place, &error),
        };
        let found = journal.find(&name("charge")).await.expect("read");
        assert_eq!(found.is_none(), gone, "{place}");
    }
}

#[tokio::test]
async fn a_journal_that_was_not_made_is_made_the_next_time() {
    for place in PLACES.iter().copied().filter(|place| place.starts_with("journal.make")) {
        for bench in Bench::both() {
            let (faults, armed) = once_at(place);
            armed.store(true, SeqCst);
            let options = JournalOptions { faults, ..bench.options() };
            let refusal = Journal::open(bench.path(), options).expect_err("it fails");
            assert!(matches!(refusal, OpenError::Injected(_)), "{refusal:?}");
            granted(&bench.journal(), wish("charge", "k-1")).await;
        }
    }
}

#[tokio::test]
async fn wherever_a_journal_fails_to_be_encrypted_or_rewrapped_it_is_the_next_time() {
    let first = || JournalEncryption::new(master(1));
    let second = || JournalEncryption::new(master(2)).following(master(1));
    for place in PLACES.iter().copied().filter(|place| place.starts_with("journal.make")) {
        let bench = Bench::new();
        granted(&bench.journal(), wish("charge", "k-1")).await;
        for encryption in [first, second] {
            let (faults, armed) = once_at(place);
            armed.store(true, SeqCst);
            let options = JournalOptions { encryption: Some(encryption()), ..bench.options() };
            let failing = JournalOptions { faults, ..options.clone() };
            let refusal = Journal::open(bench.path(), failing).expect_err("it fails");
            assert!(matches!(refusal, OpenError::Injected(_)), "{refusal:?}");
            let journal = Journal::open(bench.path(), options).expect("it opens");
            let found = journal.find(&name("charge")).await.expect("read");
            assert!(found.is_some(), "{place}");
        }
    }
}

#[tokio::test]
async fn every_place_is_passed() {
    let bench = Bench::new();
    let passed = Arc::new(std::sync::Mutex::new(Vec::new()));
    let own = Arc::clone(&passed);
    let faults = Faults::new(move |place| {
        own.lock().expect("not poisoned").push(place);
        Ok(())
    });
    let options = JournalOptions { faults, ..bench.options() };
    let journal = Journal::open(bench.path(), options).expect("it opens");
    let hold = granted(&journal, wish("charge", "k-1")).await.hold;
    journal.renew(&hold, progress(1)).await.expect("answered");
    journal.release(&hold, progress(1), Sent::Maybe).await.expect("answered");
    journal.take_up(name("charge"), TakeUp::Pending).await.expect("answered");
    journal.settle(&hold, 1, PursuitEnd::Done(Outcome::bare(201))).await.expect("answered");
    journal.forget(&name("charge"), Force::No).await.expect("answered");
    journal.purge().await.expect("answered");
    let passed = passed.lock().expect("not poisoned");
    for place in PLACES {
        assert!(passed.contains(place), "{place}");
    }
    assert!(passed.iter().all(|place| PLACES.contains(place)));
}

#[tokio::test]
async fn a_panic_while_writing_is_unavailable_and_the_next_write_succeeds() {
    let (bench, panics) = (Bench::new(), AtomicBool::new(true));
    let now = bench.now();
    let clock = JournalClock::new(move || {
        assert!(!panics.swap(false, SeqCst), "this clock fails once");
        now
    });
    let options = JournalOptions { clock, ..bench.options() };
    let journal = Journal::open(bench.path(), options).expect("it opens");
    let error = journal.begin(wish("charge", "k-1")).await.expect_err("it panics");
    assert!(matches!(error, JournalError::Unavailable(_)), "{error:?}");
    granted(&journal, wish("charge", "k-2")).await;
}
