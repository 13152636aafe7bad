//! `hapax.record`, and the statement that the manual prints for it: one call at the end, and nothing committed of a
//! duplicate.

use std::sync::Arc;

use hapax_core::{StateTag, Store as _};
use tokio::{sync::Barrier, task::JoinSet};

use super::{LEVELS, Refusal, Service, operation, record, shop};
use crate::backend::connect;

const MANUAL: &str = include_str!("../../../../../docs/sql.md");

/// How an operation is recorded: by the function, or by the statement as the manual prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Function,
    Statement,
}

impl Door {
    const BOTH: [Self; 2] = [Self::Function, Self::Statement];

    async fn prepare(self, service: &Service) {
        if self == Self::Statement {
            let printed = MANUAL.split("```sql\n").find(|part| part.starts_with("PREPARE "));
            service.run(printed.unwrap().split("```").next().unwrap()).await;
        }
    }

    /// Records this key.
    fn call(self, key: &str, status: u16) -> String {
        let (names, request) = (format!("'acme', 'POST /pay', '{key}'"), "{\"amount\": 100}");
        match self {
            Self::Function => {
                format!("SELECT hapax.record({names}, '{request}', {status}, '{{}}', 'paid')")
            }
            Self::Statement => format!(
                "EXECUTE record_operation({names}, convert_to('{request}', 'UTF8'), {status}, 'paid')"
            ),
        }
    }
}

async fn pay(service: &Service, door: Door, key: &str) -> Result<(), Refusal> {
    let work = format!("INSERT INTO payments VALUES ('{key}', 100); {}", door.call(key, 201));
    service.client.batch_execute(&work).await.map_err(Refusal::from)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_recorded_is_replayed() {
    for door in Door::BOTH {
        let (database, store) = shop().await;
        let service = Service::new(&database).await;
        door.prepare(&service).await;
        service.run("BEGIN").await;
        pay(&service, door, "key").await.unwrap();
        service.run("COMMIT").await;
        let begun = service.begin("key").await;
        assert_eq!((begun.decision.as_str(), begun.status), ("replay", Some(201)), "{door:?}");
        assert_eq!(begun.body.as_deref(), Some(&b"paid"[..]), "{door:?}");
        let kept = record(&store, operation("key").id()).await.unwrap();
        assert_eq!((kept.tag(), kept.fence.get()), (StateTag::Completed, 1), "{door:?}");
        let life = kept.expires_at.as_micros() - kept.created_at.as_micros();
        assert!((86_400_000_000..86_460_000_000).contains(&life), "{door:?}: {life}");
        service.run(&door.call("failed", 402)).await;
        let kept = record(&store, operation("failed").id()).await.unwrap();
        assert_eq!(kept.tag(), StateTag::Failed, "{door:?}");
        let mismatch = service.ask("'acme', 'POST /pay', 'key', 'other'").await.unwrap();
        assert_eq!(mismatch.decision, "mismatch", "{door:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_duplicate_can_be_committed() {
    for door in Door::BOTH {
        let (database, _store) = shop().await;
        let (first, second) = (Service::new(&database).await, Service::new(&database).await);
        for service in [&first, &second] {
            door.prepare(service).await;
            service.run("BEGIN").await;
        }
        pay(&first, door, "key").await.unwrap();
        // While the first is open, and after it.
        assert_eq!(pay(&second, door, "key").await.unwrap_err().code, "HX009", "{door:?}");
        second.run("COMMIT; BEGIN").await;
        first.run("COMMIT").await;
        assert_eq!(pay(&second, door, "key").await.unwrap_err().code, "23505", "{door:?}");
        second.run("COMMIT").await;
        assert_eq!(second.number("SELECT count(*) FROM payments").await, 1, "{door:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_another_began_cannot_be_recorded() {
    for door in Door::BOTH {
        let (database, _store) = shop().await;
        let (first, second) = (Service::new(&database).await, Service::new(&database).await);
        door.prepare(&second).await;
        first.run("BEGIN").await;
        assert_eq!(first.pay("key").await, Ok(true));
        second.run("BEGIN").await;
        assert_eq!(pay(&second, door, "key").await.unwrap_err().code, "HX009", "{door:?}");
        second.run("ROLLBACK; BEGIN").await;
        first.run("ROLLBACK").await;
        pay(&second, door, "key").await.unwrap();
        second.run("COMMIT").await;
        assert_eq!(second.number("SELECT count(*) FROM payments").await, 1, "{door:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_spent_is_begun_anew_and_not_recorded() {
    for door in Door::BOTH {
        let (database, _store) = shop().await;
        let service = Service::new(&database).await;
        door.prepare(&service).await;
        pay(&service, door, "key").await.unwrap();
        let spent = "UPDATE hapax.operations SET expires_at = 1";
        service.run(spent).await;
        service.run("BEGIN").await;
        assert_eq!(pay(&service, door, "key").await.unwrap_err().code, "23505", "{door:?}");
        service.run("ROLLBACK; BEGIN").await;
        assert_eq!(service.pay("key").await, Ok(true), "{door:?}");
        service.run("COMMIT").await;
        let fence = service.number("SELECT fence FROM hapax.operations").await;
        assert_eq!((fence, service.number("SELECT count(*) FROM payments").await), (2, 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_answers_that_are_none_are_refused() {
    for door in Door::BOTH {
        let (database, _store) = shop().await;
        let service = Service::new(&database).await;
        door.prepare(&service).await;
        for call in [door.call("", 201), door.call("schl\u{fc}ssel", 201)] {
            let refused = service.refused(&call).await;
            assert_eq!(refused.code, "HX001", "{call}: {refused:?}");
            assert!(refused.hint.is_some(), "{call}");
        }
        assert!(service.client.batch_execute(&door.call("key", 99)).await.is_err(), "{door:?}");
        assert_eq!(service.number("SELECT count(*) FROM hapax.operations").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_record_one_key_one_commits_at_every_isolation_level() {
    const CALLERS: usize = 32;
    for (level, door) in LEVELS.into_iter().flat_map(|level| Door::BOTH.map(|door| (level, door))) {
        let (database, store) = shop().await;
        let start = Arc::new(Barrier::new(CALLERS));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let service = Service { client: connect(&database.config()).await };
            door.prepare(&service).await;
            let start = Arc::clone(&start);
            callers.spawn(async move {
                start.wait().await;
                service.open(level).await;
                let paid = pay(&service, door, "key").await;
                let committed = service.client.batch_execute("COMMIT").await;
                match (paid, committed) {
                    (Ok(()), Ok(())) => true,
                    (Ok(()), Err(error)) => {
                        assert_eq!(Refusal::from(error).code, "40001", "{level}, {door:?}");
                        false
                    }
                    (Err(refusal), _) => {
                        let taken = ["23505", "HX009", "40001"].contains(&refusal.code.as_str());
                        assert!(taken, "{level}, {door:?}: {refusal:?}");
                        false
                    }
                }
            });
        }
        let paid = callers.join_all().await.into_iter().filter(|paid| *paid).count();
        let payments = database.number("SELECT count(*) FROM payments").await;
        assert_eq!((paid, payments), (1, 1), "{level}, {door:?}");
        let stored = store.load(vec![operation("key").id()]).await.remove(0).unwrap();
        assert!(stored.record.is_some(), "{level}, {door:?}");
    }
}
