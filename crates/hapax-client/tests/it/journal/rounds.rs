//! What is asked for at the same time shares one sync.

use std::sync::{Arc, Condvar, Mutex};

use futures_util::future::join_all;
use hapax_client::journal::{
    EntryFilter, Journal, JournalOptions, OwnerWriteResult, PursuitAdmission, PursuitEnd,
};
use hapax_core::{Faults, Outcome};

use super::bench::{Bench, grant, granted, wish};

const CALLERS: usize = 64;

/// What the writer waits at before each round.
#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, closed: bool) {
        *self.closed.lock().expect("not poisoned") = closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let closed = self.closed.lock().expect("not poisoned");
        drop(self.opened.wait_while(closed, |closed| *closed).expect("not poisoned"));
    }
}

/// Has everybody ask before anybody is answered.
async fn at_once<T>(gate: &Gate, asked: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    gate.set(true);
    let mut asked: Vec<_> = asked.map(Box::pin).collect();
    for one in &mut asked {
        assert!(futures_util::poll!(one).is_pending());
    }
    gate.set(false);
    join_all(asked).await
}

#[tokio::test]
async fn concurrent_operations_are_begun_and_ended_together() {
    let (bench, gate) = (Bench::new(), Arc::new(Gate::default()));
    let own = Arc::clone(&gate);
    let faults = Faults::new(move |place| {
        if place == "journal.write.before_begin" {
            own.pass();
        }
        Ok(())
    });
    let options = JournalOptions { faults, ..bench.options() };
    let journal = Journal::open(bench.path(), options).expect("it opens");

    let names: Vec<String> = (0..CALLERS).map(|number| format!("charge-{number}")).collect();
    let begun = at_once(&gate, names.iter().map(|name| journal.begin(wish(name, name)))).await;
    let begun = begun.into_iter().map(|begun| grant(begun.expect("answered")));
    let holds: Vec<_> = begun.map(|granted| granted.hold).collect();
    let begins = journal.stats().commits;
    assert!(begins <= 2, "who came first, and all who came meanwhile: {begins}");

    let end = || PursuitEnd::Done(Outcome::bare(201));
    let kept = at_once(&gate, holds.iter().map(|hold| journal.settle(hold, 1, end()))).await;
    assert!(kept.into_iter().all(|kept| kept.expect("answered") == OwnerWriteResult::Done));
    let commits = journal.stats().commits;
    assert!(commits - begins <= 2, "{commits}");
    assert_eq!(journal.list(EntryFilter::default()).await.expect("read").len(), CALLERS);
    assert_eq!(journal.stats().commits, commits, "reading commits nothing");
}

#[tokio::test]
async fn without_a_thread_everything_is_done_at_once() {
    let bench = Bench::new();
    let journal = Journal::open_inline(bench.path(), bench.options()).expect("it opens");
    let mut begin = Box::pin(journal.begin(wish("charge", "k-1")));
    let begun = futures_util::poll!(&mut begin);
    assert!(begun.is_ready());
    drop(begin);
    drop(journal);

    let other = bench.journal();
    let begun = other.begin(wish("charge", "k-2")).await.expect("answered");
    assert!(matches!(begun, PursuitAdmission::Held { .. }), "{begun:?}");
    granted(&other, wish("refund", "k-3")).await;
}

#[tokio::test]
async fn what_is_queued_is_written_before_the_last_handle_is_gone() {
    let bench = Bench::new();
    let journal = bench.journal();
    let mut begin = Box::pin({
        let journal = journal.clone();
        async move { journal.begin(wish("charge", "k-1")).await }
    });
    let _ = futures_util::poll!(&mut begin);
    drop((begin, journal));
    let listed = bench.journal().list(EntryFilter::default()).await.expect("read");
    assert_eq!(listed.len(), 1);
    assert!(!bench.path().with_file_name("client.db-wal").exists(), "one file is left behind");
}
