use std::path::Path;

use hapax::{
    Admission, AttemptEnd, BeginRequest, Body, Engine, Key, Operation, Options, Outcome, Policy,
    RequestParts, RunMode, Scope, Settled, Tenant, sqlite,
};

/// A service that charges cards, and counts how often it did.
pub(crate) struct Payments {
    engine: Engine,
    pub(crate) charges: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Charged(Outcome),
    Replayed(Outcome),
    Refused,
}

impl Payments {
    pub(crate) fn open(file: &Path) -> Self {
        let store = sqlite::Store::open(file, sqlite::Options::default()).unwrap();
        Self { engine: Engine::start(store, Options::default()), charges: 0 }
    }

    pub(crate) async fn pay(&mut self, key: &str, body: &[u8]) -> Answer {
        let tenant = Tenant::parse("acme").unwrap();
        let request = RequestParts { body, ..RequestParts::default() };
        let scope = Scope::parse("POST /payments").unwrap();
        let operation = Operation::new(tenant, scope, Key::parse(key).unwrap());
        let mode = RunMode::Run { request: None };
        let ask =
            BeginRequest { operation, request: request.into(), mode, policy: Policy::default() };
        match self.engine.begin(&ask).await.unwrap() {
            Admission::Execute(permit) => {
                self.charges += 1;
                let receipt = format!("charge {}", self.charges);
                let outcome = Outcome::new(201, Vec::new(), Body::Kept(receipt.into())).unwrap();
                let settled = permit.settle(AttemptEnd::completed(outcome.clone())).await.unwrap();
                assert!(matches!(settled, Settled::Done(_)));
                Answer::Charged(outcome)
            }
            Admission::Replay(record) => Answer::Replayed(record.outcome().unwrap().clone()),
            Admission::Mismatch(_) => Answer::Refused,
            begun @ (Admission::TakenOver { .. }
            | Admission::Queued(_)
            | Admission::Busy { .. }
            | Admission::InDoubt { .. }
            | Admission::Gone { .. }) => panic!("neither the first nor a repetition: {begun:?}"),
        }
    }
}

#[tokio::test]
async fn a_payment_sent_twice_is_charged_once_and_answered_alike() {
    let directory = tempfile::tempdir().unwrap();
    let mut payments = Payments::open(&directory.path().join("hapax.db"));
    let Answer::Charged(outcome) = payments.pay("k-1", b"100").await else { panic!("not charged") };
    assert_eq!(payments.pay("k-1", b"100").await, Answer::Replayed(outcome));
    assert_eq!(payments.charges, 1);
}

#[tokio::test]
async fn another_request_under_the_same_key_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut payments = Payments::open(&directory.path().join("hapax.db"));
    payments.pay("k-1", b"100").await;
    assert_eq!(payments.pay("k-1", b"999").await, Answer::Refused);
    assert_eq!(payments.charges, 1);
}
