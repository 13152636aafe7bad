//! What an encrypted journal keeps, as who has its key sees it and as who reads the file.

use hapax_client::journal::{
    Begin, Journal, JournalCredentials, JournalEncryption, JournalError, JournalRequest, OpenError,
    OwnerWriteResult, PursuitEnd, TakeUp,
};
use hapax_core::{Body, Header, Key, Outcome};
use http::{HeaderMap, HeaderValue, Method};

use super::bench::{Bench, DEADLINE, granted, master, name, wish};

const IN_THE_QUERY: &str = "card-of-alice-4242";
const IN_A_HEADER: &str = "token-of-alice-4243";
const IN_THE_BODY: &str = "body-of-alice-4244";
const IN_THE_ANSWER: &str = "answer-to-alice-4245";
const IN_A_REASON: &str = "reason-of-alice-4246";
const SECRETS: [&str; 5] = [IN_THE_QUERY, IN_A_HEADER, IN_THE_BODY, IN_THE_ANSWER, IN_A_REASON];

/// An operation with a secret wherever there can be one.
fn secret(text: &str) -> Begin {
    let headers = HeaderMap::from_iter([
        (http::header::AUTHORIZATION, HeaderValue::from_static(IN_A_HEADER)),
        (http::header::CONTENT_TYPE, HeaderValue::from_static("text/plain")),
    ]);
    let url = format!("https://api.example.com/charges?card={IN_THE_QUERY}").parse();
    let request = JournalRequest::new(
        Method::POST,
        url.expect("a URL"),
        headers,
        IN_THE_BODY.into(),
        JournalCredentials::Keep,
    );
    let key = Key::parse(format!("key-of-{text}")).expect("a key");
    Begin::new(name(text), key, request.expect("within limits"), DEADLINE)
}

fn answer() -> Outcome {
    let header = Header { name: "location".to_owned(), value: IN_THE_ANSWER.into() };
    Outcome::new(201, vec![header], Body::Kept(IN_THE_ANSWER.into())).expect("an outcome")
}

/// One that is done, one that is unknown and one that is pending.
async fn fill(journal: &Journal) {
    let unknown = || PursuitEnd::Unknown { reason: IN_A_REASON.to_owned() };
    let ends = [("done", Some(PursuitEnd::Done(answer()))), ("unknown", Some(unknown()))];
    for (text, end) in ends.into_iter().chain([("pending", None)]) {
        let hold = granted(journal, secret(text)).await.hold;
        if let Some(end) = end {
            let settled = journal.settle(&hold, 1, end).await.expect("answered");
            assert_eq!(settled, OwnerWriteResult::Done);
        }
    }
}

#[tokio::test]
async fn nothing_that_was_sent_or_answered_is_in_an_encrypted_journal_in_the_clear() {
    for (bench, is_clear) in Bench::both().into_iter().zip([true, false]) {
        let journal = bench.journal();
        fill(&journal).await;
        for secret in SECRETS {
            assert_eq!(bench.holds(secret), is_clear, "{secret} in the log");
        }
        drop(journal);
        for secret in SECRETS {
            assert_eq!(bench.holds(secret), is_clear, "{secret} in the file");
        }
        assert!(bench.holds("https://api.example.com/charges") && bench.holds("key-of-done"));

        let journal = bench.journal();
        let find = async |text| journal.find(&name(text)).await.expect("read").expect("there");
        let [done, unknown, pending] =
            [find("done").await, find("unknown").await, find("pending").await];
        assert_eq!(done.state.answer(), Some(&answer()));
        assert_eq!(unknown.state.reason(), Some(IN_A_REASON));
        assert_eq!(pending.request.body(), IN_THE_BODY);
        assert_eq!(pending.request.url().query(), Some(&*format!("card={IN_THE_QUERY}")));
        assert_eq!(pending.request.headers()[http::header::AUTHORIZATION], IN_A_HEADER);
    }
}

/// Everything of a sealed row, made into something that was not written there.
const ALTERED: &[&str] = &[
    "key = 'k-2'",
    "method = 'PUT'",
    "url = 'https://api.example.com/refunds'",
    "withheld = 'authorization'",
    "headers = CAST('x-new: 1' || char(13, 10) AS BLOB)",
    "digest = zeroblob(32)",
    "seal = zeroblob(32)",
    "body = x''",
    "body = substr(body, 1, length(body) - 1)",
    "body = (SELECT body FROM hapax_calls WHERE name = 'unknown')",
    "format = 1",
];

/// The same of how it ended.
const ALTERED_ENDS: &[&str] = &[
    "answer_body = x''",
    "answer_body = substr(answer_body, 1, length(answer_body) - 1)",
    "answer_body = (SELECT answer_body FROM hapax_calls WHERE name = 'other')",
    "state = 3",
    "fence = fence + 1",
    "owner = owner + 1",
];

#[tokio::test]
async fn what_was_moved_between_rows_of_a_journal_or_altered_is_neither_sent_nor_given() {
    let all = ALTERED.iter().map(|change| ("pending", change));
    for (row, change) in all.chain(ALTERED_ENDS.iter().map(|change| ("done", change))) {
        let bench = Bench::encrypted();
        let journal = bench.journal();
        fill(&journal).await;
        let other = granted(&journal, secret("other")).await.hold;
        journal.settle(&other, 1, PursuitEnd::Done(answer())).await.expect("answered");
        bench.sql(&format!("UPDATE hapax_calls SET {change} WHERE name = '{row}'"));
        let errors = [
            journal.find(&name(row)).await.err(),
            journal.begin(secret(row)).await.err(),
            journal.take_up(name(row), TakeUp::Pending).await.err(),
        ];
        for error in errors {
            let error = error.expect("it is refused");
            assert!(matches!(error, JournalError::Damaged { .. }), "{change}: {error:?}");
        }
    }
}

#[tokio::test]
async fn people_see_of_an_encrypted_journal_what_stays_clear() {
    let bench = Bench::encrypted();
    fill(&bench.journal()).await;
    let client = bench.client();
    let shown = |name: &str| -> (String, String, Option<u16>, Option<String>) {
        let view = "SELECT state, url, status, coalesce(reason, body, answer)
                    FROM hapax_calls_readable WHERE name = ?1";
        let read =
            |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        client.query_row(view, [name], read).expect("shown")
    };
    for state in ["done", "unknown", "pending"] {
        let url = "https://api.example.com/charges".to_owned();
        assert_eq!(shown(state), (state.to_owned(), url, None, None));
    }
}

#[tokio::test]
async fn an_encrypted_journal_opens_with_its_own_master_key_alone() {
    let bench = Bench::encrypted();
    fill(&bench.journal()).await;
    let before = std::fs::read(bench.path()).expect("read");
    let refused = bench.open(None).expect_err("it is refused");
    assert!(matches!(refused, OpenError::Encrypted { .. }), "{refused:?}");
    assert!(refused.to_string().contains("--master-key-file"), "{refused}");
    let other = Some(JournalEncryption::new(master(2)));
    let refused = bench.open(other).expect_err("it is refused");
    assert!(matches!(refused, OpenError::OtherMasterKey { .. }), "{refused:?}");
    assert!(refused.to_string().contains("give that one"), "{refused}");
    assert_eq!(std::fs::read(bench.path()).expect("read"), before);

    bench.sql("UPDATE hapax_journal_key SET wrapped = zeroblob(length(wrapped))");
    let refused = bench.open(Some(JournalEncryption::new(master(1)))).expect_err("it is refused");
    assert!(matches!(refused, OpenError::Key { .. }), "{refused:?}");
}

#[tokio::test]
async fn another_master_key_takes_over_at_the_first_opening_with_both() {
    let bench = Bench::encrypted();
    fill(&bench.journal()).await;
    let both = JournalEncryption::new(master(2)).following(master(1));
    drop(bench.open(Some(both)).expect("it opens"));
    bench.open(Some(JournalEncryption::new(master(1)))).expect_err("the old one is done with");
    let journal = bench.open(Some(JournalEncryption::new(master(2)))).expect("it opens");
    let done = journal.find(&name("done")).await.expect("read").expect("there");
    assert_eq!(done.state.answer(), Some(&answer()));
}

#[tokio::test]
async fn what_was_begun_in_the_clear_is_read_and_its_end_is_sealed() {
    let bench = Bench::new();
    let hold = granted(&bench.journal(), wish("charge", "k-1")).await.hold;
    let journal = bench.open(Some(JournalEncryption::new(master(1)))).expect("it opens");
    journal.settle(&hold, 1, PursuitEnd::Done(answer())).await.expect("answered");
    assert!(!bench.holds(IN_THE_ANSWER));
    let found = journal.find(&name("charge")).await.expect("read").expect("there");
    assert_eq!(found.state.answer(), Some(&answer()));
}

#[tokio::test]
async fn who_opened_a_journal_before_it_was_encrypted_writes_nothing_more_in_the_clear() {
    let bench = Bench::new();
    let before = bench.journal();
    let hold = granted(&before, wish("charge", "k-1")).await.hold;
    let with_key = bench.open(Some(JournalEncryption::new(master(1)))).expect("it opens");
    granted(&with_key, secret("sealed")).await;

    let begun = before.begin(secret("clear")).await.expect_err("it is refused");
    assert!(matches!(begun, JournalError::Unavailable(_)), "{begun:?}");
    let done = PursuitEnd::Done(answer());
    let settled = before.settle(&hold, 1, done.clone()).await.expect_err("it is refused");
    assert!(matches!(settled, JournalError::Unavailable(_)), "{settled:?}");
    let read = before.find(&name("sealed")).await.expect_err("it is refused");
    assert!(matches!(read, JournalError::Encrypted { .. }), "{read:?}");
    assert!(read.to_string().contains("open it again with its master key"), "{read}");
    for secret in SECRETS {
        assert!(!bench.holds(secret), "{secret}");
    }
    // What was answered is not lost: it is asked for again, or settled by whoever has the key.
    let settled = with_key.settle(&hold, 1, done).await.expect("answered");
    assert_eq!(settled, OwnerWriteResult::Done);
}
