//! What may be forgotten, and what never is by itself.

use std::time::Duration;

use hapax_client::journal::{
    EntryFilter, EntryStateTag, Force, Forgotten, Journal, PursuitEnd, Sent,
};
use hapax_core::Outcome;

use super::bench::{Bench, YEAR, granted, name, progress, wish};

/// One operation in each state, named after it.
async fn one_of_each(journal: &Journal) {
    for tag in EntryStateTag::ALL {
        let hold = granted(journal, wish(tag.as_str(), tag.as_str())).await.hold;
        let reason = "because".to_owned();
        let end = match tag {
            EntryStateTag::Pending => {
                journal.release(&hold, progress(1), Sent::Maybe).await.expect("answered");
                continue;
            }
            EntryStateTag::Done => PursuitEnd::Done(Outcome::bare(201)),
            EntryStateTag::Refused => PursuitEnd::Refused(Outcome::bare(402)),
            EntryStateTag::Unknown => PursuitEnd::Unknown { reason },
            EntryStateTag::GaveUp => PursuitEnd::GaveUp { reason },
        };
        journal.settle(&hold, 1, end).await.expect("answered");
    }
}

async fn states(journal: &Journal) -> Vec<EntryStateTag> {
    let listed = journal.list(EntryFilter::default()).await.expect("read");
    listed.into_iter().map(|line| line.entry.expect("readable").state.tag()).collect()
}

#[tokio::test]
async fn only_what_is_over_is_forgotten_without_force() {
    let bench = Bench::new();
    let journal = bench.journal();
    one_of_each(&journal).await;
    for tag in EntryStateTag::ALL {
        let expected = match tag {
            EntryStateTag::Pending => Forgotten::Pending { held: None },
            EntryStateTag::Done
            | EntryStateTag::Refused
            | EntryStateTag::Unknown
            | EntryStateTag::GaveUp => Forgotten::Done,
        };
        let forgotten = journal.forget(&name(tag.as_str()), Force::No).await.expect("answered");
        assert_eq!(forgotten, expected, "{tag:?}");
    }
    assert_eq!(states(&journal).await, [EntryStateTag::Pending]);
    let forgotten = journal.forget(&name("pending"), Force::Yes).await.expect("answered");
    assert_eq!(forgotten, Forgotten::Done);
    for force in [Force::No, Force::Yes] {
        let forgotten = journal.forget(&name("pending"), force).await.expect("answered");
        assert_eq!(forgotten, Forgotten::Absent);
    }
}

#[tokio::test]
async fn whoever_forgets_what_is_pursued_is_told_so() {
    let bench = Bench::new();
    let journal = bench.journal();
    granted(&journal, wish("charge", "k-1")).await;
    let forgotten = journal.forget(&name("charge"), Force::No).await.expect("answered");
    assert_eq!(forgotten, Forgotten::Pending { held: Some(Duration::from_secs(10)) });
}

#[tokio::test]
async fn a_purge_leaves_what_is_pending_or_unknown_however_old_it_is() {
    let bench = Bench::new();
    let journal = bench.journal();
    one_of_each(&journal).await;
    assert_eq!(journal.purge().await.expect("answered"), 0);
    bench.pass(YEAR * 10);
    assert_eq!(journal.purge().await.expect("answered"), 3);
    assert_eq!(states(&journal).await, [EntryStateTag::Pending, EntryStateTag::Unknown]);
}

#[tokio::test]
async fn a_forgotten_name_begins_anew_with_a_new_key() {
    let bench = Bench::new();
    let journal = bench.journal();
    one_of_each(&journal).await;
    journal.forget(&name("done"), Force::No).await.expect("answered");
    let again = granted(&journal, wish("done", "k-2")).await;
    assert_eq!((again.found, again.hold.key().as_str()), (None, "k-2"));
}

#[tokio::test]
async fn people_can_read_the_journal() {
    let bench = Bench::new();
    one_of_each(&bench.journal()).await;
    let client = bench.client();
    let query = "SELECT name, state, status, reason, url, body, headers FROM hapax_calls_readable";
    let mut statement = client.prepare(query).expect("it is there");
    let rows = statement
        .query_map([], |row| {
            assert_eq!(row.get::<_, String>(0)?, row.get::<_, String>(1)?);
            assert_eq!(row.get::<_, String>(5)?, "{}");
            Ok((row.get(2)?, row.get(3)?, row.get(4)?))
        })
        .expect("it runs");
    let rows: Vec<(Option<u16>, Option<String>, String)> =
        rows.collect::<Result<_, _>>().expect("read");
    let url = "https://api.example.com/charges?x=1";
    let because = Some("because".to_owned());
    let expected = [
        (None, None),
        (Some(201), None),
        (Some(402), None),
        (None, because.clone()),
        (None, because),
    ];
    assert_eq!(rows, expected.map(|(status, reason)| (status, reason, url.to_owned())));
}
