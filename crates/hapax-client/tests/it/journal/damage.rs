//! What is not what was written is refused by name, and left as it is.

use hapax_client::journal::{
    EntryFilter, EntryStateTag, EntrySummary, Force, Forgotten, Journal, JournalError,
    PursuitAdmission, PursuitEnd, Sent, TakeUp, UnreadableEntry,
};
use hapax_core::Outcome;

use super::bench::{Bench, granted, name, progress, wish};

/// Everything that is read, made into something that was never written.
const OF_A_REQUEST: &[&str] = &[
    "key = 'k-2'",
    "method = 'PUT'",
    "method = ''",
    "url = 'https://api.example.com/refunds'",
    "url = 'no url at all'",
    "headers = CAST('content-type: text/plain' || char(13, 10) AS BLOB)",
    "headers = x'00'",
    "headers = x''",
    "withheld = 'authorization'",
    "body = x'00'",
    "digest = zeroblob(32)",
    "seal = x''",
    "state = 0",
    "state = 6",
    "fence = 0",
    "attempts = -1",
    "left_us = -1",
    "noted_boot = x'00'",
    "lease_us = -1",
    "format = 0",
    "format = 2",
];

const OF_AN_ANSWER: &[&str] = &[
    "answer_head = x''",
    "answer_head = NULL",
    "answer_body = x'00'",
    "answer_body = NULL",
    "answer_digest = zeroblob(16)",
    "answer_digest = x'00'",
    "ended_at = NULL",
    "ended_boot = x'00'",
];

fn is_damage(error: &JournalError) -> bool {
    let text = error.to_string();
    matches!(error, JournalError::Damaged { .. })
        && text.contains("`charge`")
        && text.contains("forget it by force")
}

fn contents(bench: &Bench) -> String {
    let all = "SELECT group_concat(quote(name) || quote(key) || quote(state) || quote(fence)
               || quote(owner) || quote(noted_at) || quote(answer_head)) FROM hapax_calls";
    bench.client().query_row(all, [], |row| row.get(0)).expect("read")
}

#[tokio::test]
async fn a_damaged_request_is_neither_sent_nor_written_over() {
    for damage in OF_A_REQUEST {
        let bench = Bench::new();
        let journal = bench.journal();
        let hold = granted(&journal, wish("charge", "k-1")).await.hold;
        bench.sql(&format!("UPDATE hapax_calls SET {damage}"));
        let before = contents(&bench);

        let done = PursuitEnd::Done(Outcome::bare(201));
        let errors = [
            journal.begin(wish("charge", "k-1")).await.err(),
            journal.take_up(name("charge"), TakeUp::Pending).await.err(),
            journal.renew(&hold, progress(1)).await.err(),
            journal.release(&hold, progress(1), Sent::Nothing).await.err(),
            journal.settle(&hold, 1, done).await.err(),
            journal.find(&name("charge")).await.err(),
            journal.forget(&name("charge"), Force::No).await.err(),
        ];
        for error in errors {
            let error = error.expect("it is refused");
            assert!(is_damage(&error), "{damage}: {error:?}");
        }
        assert_eq!(contents(&bench), before, "{damage}");
        let forgotten = journal.forget(&name("charge"), Force::Yes).await.expect("answered");
        assert_eq!(forgotten, Forgotten::Done);
    }
}

#[tokio::test]
async fn a_damaged_answer_is_not_given() {
    for damage in OF_AN_ANSWER {
        let bench = Bench::new();
        let journal = bench.journal();
        let hold = granted(&journal, wish("charge", "k-1")).await.hold;
        journal.settle(&hold, 1, PursuitEnd::Done(Outcome::bare(201))).await.expect("answered");
        bench.sql(&format!("UPDATE hapax_calls SET {damage}"));
        let error = journal.begin(wish("charge", "k-1")).await.expect_err("it is refused");
        assert!(is_damage(&error), "{damage}: {error:?}");
    }
}

#[tokio::test]
async fn an_answer_that_belongs_to_another_operation_is_not_given() {
    let bench = Bench::new();
    let journal = bench.journal();
    for (text, status) in [("charge", 201), ("refund", 202)] {
        let hold = granted(&journal, wish(text, text)).await.hold;
        journal.settle(&hold, 1, PursuitEnd::Done(Outcome::bare(status))).await.expect("answered");
    }
    bench.sql(
        "UPDATE hapax_calls SET (answer_head, answer_body, answer_digest) =
         (SELECT answer_head, answer_body, answer_digest FROM hapax_calls WHERE name = 'refund')
         WHERE name = 'charge'",
    );
    let error = journal.find(&name("charge")).await.expect_err("it is refused");
    assert!(is_damage(&error), "{error:?}");
}

#[tokio::test]
async fn what_a_newer_version_wrote_is_left_to_it() {
    let bench = Bench::new();
    let journal = bench.journal();
    granted(&journal, wish("charge", "k-1")).await;
    bench.sql("UPDATE hapax_calls SET format = 3");
    let error = journal.begin(wish("charge", "k-1")).await.expect_err("it is refused");
    let JournalError::TooNew { name, source: UnreadableEntry::TooNew { found: 3 } } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(name, "charge");
    assert!(error.to_string().contains("upgrade this program"), "{error}");
}

async fn names(journal: &Journal, filter: EntryFilter) -> Vec<Result<String, String>> {
    let listed = journal.list(filter).await.expect("read");
    let line = |entry: Result<EntrySummary, JournalError>| match entry {
        Ok(entry) => Ok(entry.name.to_string()),
        Err(JournalError::Damaged { name, .. }) => Err(name),
        Err(other) => panic!("{other:?}"),
    };
    listed.into_iter().map(|listed| line(listed.entry)).collect()
}

#[tokio::test]
async fn the_list_shows_what_is_damaged_beside_what_is_not() {
    let bench = Bench::new();
    let journal = bench.journal();
    for text in ["a", "b", "c"] {
        granted(&journal, wish(text, text)).await;
    }
    bench.sql("UPDATE hapax_calls SET body = x'ff' WHERE name = 'b'");
    let (a, b, c) = (Ok("a".to_owned()), Err("b".to_owned()), Ok("c".to_owned()));
    let all = [a, b, c];
    assert_eq!(names(&journal, EntryFilter::default()).await, all);
    let pending = EntryFilter { state: Some(EntryStateTag::Pending), ..EntryFilter::default() };
    assert_eq!(names(&journal, pending).await, all);

    let first = EntryFilter { limit: 2, ..EntryFilter::default() };
    let page = journal.list(first).await.expect("read");
    let rest =
        EntryFilter { after: page.last().map(|line| line.position), ..EntryFilter::default() };
    assert_eq!(names(&journal, rest).await, all[2..]);
    let done = EntryFilter { state: Some(EntryStateTag::Done), ..EntryFilter::default() };
    assert!(names(&journal, done).await.is_empty());
}

#[tokio::test]
async fn one_damaged_operation_does_not_hinder_the_others() {
    let bench = Bench::new();
    let journal = bench.journal();
    granted(&journal, wish("charge", "k-1")).await;
    bench.sql("UPDATE hapax_calls SET body = x'ff'");
    let (bad, good) =
        tokio::join!(journal.begin(wish("charge", "k-1")), journal.begin(wish("refund", "k-2")));
    assert!(is_damage(&bad.expect_err("it is refused")));
    assert!(matches!(good.expect("answered"), PursuitAdmission::Granted(_)));
}
