//! Effects outside of the database: each step once, whatever comes again.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use hapax_core::{
    AnswerMeaning, AttemptAnswer, Outcome, Policy, Salt, Timestamp, memory::Store, outbox::Stored,
};
use hapax_engine::{Engine, Options, Run, Workflows};
use hapax_messaging::{
    consumer::External,
    sink::{Outage, Sink, Verdict},
};

use tokio::time::Instant;

use super::{
    queue::Queue,
    scene::{hurried, incoming, name},
};

#[derive(Clone, Default)]
struct Letters(Arc<Mutex<Vec<Stored>>>);

impl Sink for Letters {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        self.0.lock().unwrap().extend_from_slice(events);
        Ok(vec![Verdict::Taken; events.len()])
    }
}

/// A store in memory, whose clock goes on.
fn store() -> Store {
    let begun = Instant::now();
    Store::new(Salt::from_bytes([7; 32]), move || {
        Timestamp::from_micros(1_000_000_000).plus(begun.elapsed())
    })
}

/// A workflow that mails, and answers 503 after the first mail.
fn mailing(mails: &Arc<AtomicU32>) -> Workflows {
    let (mails, runs) = (Arc::clone(mails), Arc::new(AtomicU32::new(0)));
    Workflows::new().on("mailer", Policy::default(), move |run: Run| {
        let (mails, runs) = (Arc::clone(&mails), Arc::clone(&runs));
        async move {
            run.step("mail", |_key| async {
                mails.fetch_add(1, Ordering::SeqCst);
                Ok::<_, std::convert::Infallible>(())
            })
            .await?;
            let first = runs.fetch_add(1, Ordering::SeqCst) == 0;
            let meaning =
                if first { AnswerMeaning::TakenForNotDone } else { AnswerMeaning::Completed };
            Ok(AttemptAnswer { outcome: Outcome::bare(0), meaning })
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_mailed_once_though_it_comes_again() {
    let mails = Arc::new(AtomicU32::new(0));
    let workflows = mailing(&mails);
    let engine = Engine::start(store(), Options::default());
    let queue = Queue::deaf(2);
    queue.push(incoming("m-1", "{}"));
    let letters = Letters::default();
    let consumer = External::new(name(), engine, workflows, letters.clone(), "mails.dead");
    let running = consumer.options(hurried()).run(queue.clone(), pending());
    tokio::time::timeout(Duration::from_secs(60), running).await.unwrap().unwrap();
    assert_eq!(mails.load(Ordering::SeqCst), 1);
    assert_eq!(queue.done(), ["m-1"]);
    assert!(letters.0.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_used_for_other_content_goes_to_the_dead_letters() {
    let mails = Arc::new(AtomicU32::new(0));
    let workflows = mailing(&mails);
    let engine = Engine::start(store(), Options::default());
    let letters = Letters::default();
    for payload in ["one", "another"] {
        let queue = Queue::default();
        queue.push(incoming("m-1", payload));
        let (engine, workflows) = (engine.clone(), workflows.clone());
        let consumer = External::new(name(), engine, workflows, letters.clone(), "mails.dead");
        consumer.options(hurried()).run(queue, pending()).await.unwrap();
    }
    assert_eq!(mails.load(Ordering::SeqCst), 1);
    let letters = letters.0.lock().unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].payload, "another");
}
