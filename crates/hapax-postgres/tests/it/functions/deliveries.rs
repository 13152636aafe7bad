//! `hapax.first_delivery`: one effect for each message.

use hapax_verify::conformance::Backend as _;
use tokio::task::JoinSet;

use super::{LEVELS, Refusal, Service, shop};
use crate::backend::Postgres;

async fn deliver(service: &Service, content: &str) -> Result<bool, Refusal> {
    let text =
        format!("SELECT hapax.first_delivery('mailer', 'm-1', '{content}', wait => '60 seconds')");
    let rows = service.client.query_typed(&text, &[]).await.map_err(Refusal::from)?;
    Ok(rows[0].get(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_delivery_is_told_from_every_later_one() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    service.run("BEGIN").await;
    assert_eq!(deliver(&service, "hello").await, Ok(true));
    assert_eq!(deliver(&service, "hello").await, Ok(false), "in the same transaction");
    service.run("COMMIT").await;
    assert_eq!(deliver(&service, "hello").await, Ok(false), "in another");
    let other = "SELECT hapax.first_delivery('printer', 'm-1', 'hello')::int::int8";
    assert_eq!(service.number(other).await, 1, "another consumer has deliveries of its own");
    let stored = "SELECT count(*) FROM hapax.inbox_readable \
                  WHERE consumer = 'mailer' AND message_id = 'm-1' AND state = 'done'";
    assert_eq!(database.number(stored).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_was_rolled_back_is_the_first_again() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    service.run("BEGIN; SAVEPOINT before").await;
    assert_eq!(deliver(&service, "hello").await, Ok(true));
    service.run("ROLLBACK TO before").await;
    assert_eq!(deliver(&service, "hello").await, Ok(true));
    service.run("ROLLBACK").await;
    assert_eq!(deliver(&service, "hello").await, Ok(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_content_under_the_same_id_is_refused() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    assert_eq!(deliver(&service, "hello").await, Ok(true));
    let refused = deliver(&service, "goodbye").await.unwrap_err();
    assert_eq!(refused.code, "HX005");
    assert!(refused.hint.is_some());
    assert_eq!(deliver(&service, "hello").await, Ok(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_another_is_at_is_left_to_be_delivered_again() {
    let (database, _store) = shop().await;
    let (first, second) = (Service::new(&database).await, Service::new(&database).await);
    first.run("BEGIN").await;
    assert_eq!(deliver(&first, "hello").await, Ok(true));
    let busy = "SELECT hapax.first_delivery('mailer', 'm-1', 'hello', wait => '0')";
    let refused = second.refused(busy).await;
    assert_eq!(refused.code, "HX008");
    assert!(refused.hint.is_some());
    first.run("ROLLBACK").await;
    assert_eq!(deliver(&second, "hello").await, Ok(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_past_its_retention_is_the_first_again() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    assert_eq!(deliver(&service, "hello").await, Ok(true));
    database.step_clock(7 * 24 * 60 * 60 * 1_000_000 - 60_000_000).await;
    assert_eq!(deliver(&service, "hello").await, Ok(false));
    database.step_clock(60_000_000).await;
    assert_eq!(deliver(&service, "hello").await, Ok(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_deliveries_at_once_one_is_the_first() {
    for level in LEVELS {
        let (database, _store) = shop().await;
        let mut deliveries = JoinSet::new();
        for _ in 0..16 {
            let service = Service::new(&database).await;
            deliveries.spawn(async move {
                loop {
                    service.open(level).await;
                    let end = match deliver(&service, "hello").await {
                        Ok(true) => "INSERT INTO payments VALUES ('mail', 1); COMMIT",
                        Ok(false) => "COMMIT",
                        Err(refusal) => {
                            assert_eq!(refusal.code, "40001", "{level}: {refusal:?}");
                            service.run("ROLLBACK").await;
                            continue;
                        }
                    };
                    if service.client.batch_execute(end).await.is_ok() {
                        return;
                    }
                    service.run("ROLLBACK").await;
                }
            });
        }
        deliveries.join_all().await;
        assert_eq!(database.number("SELECT count(*) FROM payments").await, 1, "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_past_its_retention_goes_with_a_purge_of_the_store_or_by_a_function() {
    let (database, store) = shop().await;
    let service = Service::new(&database).await;
    let deliver = "SELECT hapax.first_delivery('mailer', 'm-' || n, retention => '1 minute') \
                   FROM generate_series(1, 50) AS n";
    service.run(deliver).await;
    service.run("SELECT hapax.first_delivery('printer', 'm-1')").await;
    assert_eq!(hapax_core::Store::purge(&store, 100).await.unwrap().total(), 0);
    assert_eq!(service.number("SELECT hapax.purge_inbox()").await, 0);
    database.step_clock(61_000_000).await;
    assert_eq!(hapax_core::Store::purge(&store, 20).await.unwrap().deleted, 20);
    assert_eq!(service.number("SELECT hapax.purge_inbox(most => 25)").await, 25);
    assert_eq!(hapax_core::Store::purge(&store, 100).await.unwrap().deleted, 5);
    assert_eq!(database.number("SELECT count(*) FROM hapax.inbox").await, 1, "the printer's");
    assert_eq!(service.refused("SELECT hapax.purge_inbox(0)").await.code, "HX001");
}

/// One failed attempt; how many have failed, and whether it is over.
async fn fail(service: &Service, content: &str, more: &str) -> (i32, bool) {
    let text = format!(
        "SELECT attempts, is_over FROM hapax.fail_delivery('mailer', 'm-1', '{content}', 'no such address'{more})"
    );
    let rows = service.client.query_typed(&text, &[]).await.unwrap();
    (rows[0].get(0), rows[0].get(1))
}

async fn letters(database: &Postgres) -> Vec<String> {
    let text = "SELECT string_agg(message_id || ' ' || reason || ': ' || detail || ' ' || payload, '; ' ORDER BY payload) \
                FROM hapax.inbox_dead_readable";
    let service = Service::new(database).await;
    let rows = service.client.query_typed(text, &[]).await.unwrap();
    rows.iter().filter_map(|row| row.get::<_, Option<String>>(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_fails_the_last_of_its_attempts_is_a_dead_letter() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    let more =
        ", attempts_max => 3, key => 'ada', source => 'mails', headers => '{\"trace\": \"7\"}'";
    assert_eq!(fail(&service, "hello", more).await, (1, false));
    service.run("BEGIN").await;
    assert_eq!(deliver(&service, "hello").await, Ok(true), "it is tried again");
    service.run("ROLLBACK").await;
    assert_eq!(fail(&service, "hello", more).await, (2, false));
    assert_eq!(letters(&database).await, Vec::<String>::new());
    assert_eq!(fail(&service, "hello", more).await, (3, true));
    let expected = "m-1 poison: it failed 3 times: no such address hello";
    assert_eq!(letters(&database).await, [expected]);
    assert_eq!(deliver(&service, "hello").await, Ok(false), "it is never tried again");
    assert_eq!(fail(&service, "hello", more).await, (0, true), "told twice, it is one letter");
    assert_eq!(letters(&database).await, [expected]);
    let whole = "SELECT count(*) FROM hapax.inbox_dead WHERE key = 'ada' AND source = 'mails' \
                 AND headers = '\\x010000000574726163650000000137'";
    assert_eq!(database.number(whole).await, 1, "with what came with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_failed_for_good_leaves_its_reason_and_no_letter() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    assert_eq!(fail(&service, "hello", ", for_good => true").await, (1, true));
    assert_eq!(deliver(&service, "hello").await, Ok(false));
    assert_eq!(letters(&database).await, Vec::<String>::new());
    let stored = "SELECT count(*) FROM hapax.inbox_readable WHERE state = 'failed' AND reason = 'no such address'";
    assert_eq!(database.number(stored).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_content_under_a_known_id_becomes_a_letter_and_harms_nothing() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    assert_eq!(deliver(&service, "hello").await, Ok(true));
    assert_eq!(fail(&service, "goodbye", "").await, (0, true));
    let expected =
        "m-1 id-conflict: another message with this id and other content was seen goodbye";
    assert_eq!(letters(&database).await, [expected]);
    assert_eq!(deliver(&service, "hello").await, Ok(false));
    assert_eq!(fail(&service, "hello", "").await, (0, true), "what was done has not failed");
    let done = "SELECT count(*) FROM hapax.inbox_readable WHERE state = 'done'";
    assert_eq!(database.number(done).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_not_counted_while_another_delivery_is_at_work() {
    let (database, _store) = shop().await;
    let (first, second) = (Service::new(&database).await, Service::new(&database).await);
    first.run("SELECT hapax.first_delivery('mailer', 'm-0'); BEGIN").await;
    assert_eq!(deliver(&first, "hello").await, Ok(true));
    let busy = "SELECT hapax.fail_delivery('mailer', 'm-1', 'hello', wait => '0')";
    assert_eq!(second.refused(busy).await.code, "HX008");
    first.run("COMMIT").await;
    assert_eq!(fail(&second, "hello", "").await, (0, true));
    for wrong in [
        "attempts_max => 0",
        "reason => NULL",
        "headers => '[]'",
        "headers => NULL",
        "key => 'k', for_good => NULL",
    ] {
        let text = format!("SELECT hapax.fail_delivery('mailer', 'm-1', 'hello', {wrong})");
        assert_eq!(second.refused(&text).await.code, "HX001", "{text}");
    }
}
