use std::path::Path;

use hapax::{
    Ask, Begun, Body, Ended, Engine, Key, Operation, Options, Outcome, Policy, RequestParts, Scope,
    Settled, Tenant, Wish, sqlite,
};

/// A service that charges cards, and counts how often it did.
pub(crate) struct Payments {
    engine: Engine<sqlite::Store>,
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
        let fingerprint = self.engine.salt().tenant_key(&tenant).fingerprint(&request);
        let scope = Scope::parse("POST /payments").unwrap();
        let operation = Operation::new(tenant, scope, Key::parse(key).unwrap());
        let wish = Wish::Run { request: None };
        let ask = Ask { operation, fingerprint, wish, policy: Policy::default() };
        match self.engine.begin(&ask).await.unwrap() {
            Begun::Execute(permit) => {
                self.charges += 1;
                let receipt = format!("charge {}", self.charges);
                let outcome = Outcome::new(201, Vec::new(), Body::Kept(receipt.into())).unwrap();
                let settled = permit.settle(Ended::Answered(outcome.clone())).await.unwrap();
                assert!(matches!(settled, Settled::Done(_)));
                Answer::Charged(outcome)
            }
            Begun::Replay(record) => Answer::Replayed(record.outcome().unwrap().clone()),
            Begun::Mismatch(_) => Answer::Refused,
            begun @ (Begun::TakenOver { .. }
            | Begun::Queued(_)
            | Begun::Busy { .. }
            | Begun::InDoubt { .. }
            | Begun::Gone { .. }) => panic!("neither the first nor a repetition: {begun:?}"),
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
