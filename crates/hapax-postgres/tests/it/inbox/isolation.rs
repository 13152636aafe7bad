//! At every isolation level, and beside `hapax.first_delivery`.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{
    Key, Scope, TransactionError,
    inbox::{
        First, Identity, Inbox, Message, MessageAnswer, MessageArrival, MessageEnd, MessageEntered,
        Proof, RegisteredConsumer,
    },
};
use hapax_postgres::transaction::Isolation;
use tokio::task::JoinSet;

use crate::{
    backend::Postgres,
    transactions::doors::{Deadpool, Door},
};

const WEEK: Duration = Duration::from_secs(7 * 86_400);

async fn shop() -> Postgres {
    let postgres = Postgres::empty().await;
    postgres.store().await;
    postgres.client().await.batch_execute("CREATE TABLE effects (name text)").await.unwrap();
    postgres
}

async fn mailer(inbox: &impl Inbox) -> RegisteredConsumer {
    inbox.enlist(&Scope::parse("mailer").unwrap(), WEEK).await.unwrap()
}

fn arrival(consumer: &RegisteredConsumer, id: &str) -> MessageArrival {
    let message = Message {
        id: Key::parse(id).unwrap(),
        identity: Identity::Business,
        source: "orders".to_owned(),
        key: None,
        version: None,
        payload: Bytes::from_static(b"hello"),
        headers: Vec::new(),
        place: None,
    };
    let message = Arc::new(message);
    MessageArrival { consumer: consumer.clone(), message, proof: Proof::Record, in_turn: false }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_every_isolation_level_a_message_is_acted_on_once() {
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable] {
        let postgres = shop().await;
        let inbox = Deadpool::open(&postgres.config(), Some(level));
        let consumer = mailer(&inbox).await;
        let mut deliveries = JoinSet::new();
        for _ in 0..12 {
            let (inbox, arrival) = (inbox.clone(), arrival(&consumer, "m-1"));
            deliveries.spawn(async move {
                loop {
                    match inbox.enter(&arrival).await {
                        Ok(MessageEntered::First(First { mut transaction, .. })) => {
                            let effect = "INSERT INTO effects VALUES ('m-1')".to_owned();
                            Deadpool::write(&mut transaction, effect).await.unwrap();
                            inbox.leave(transaction, &MessageEnd::Done).await.unwrap();
                        }
                        Ok(MessageEntered::Answer(MessageAnswer::Duplicate)) => return,
                        Ok(MessageEntered::Answer(MessageAnswer::Busy))
                        | Err(TransactionError::Conflict(_) | TransactionError::Taken(_)) => {}
                        Ok(MessageEntered::Answer(answer)) => panic!("{level}: {answer:?}"),
                        Err(error) => panic!("{level}: {error:?}"),
                    }
                }
            });
        }
        deliveries.join_all().await;
        assert_eq!(postgres.number("SELECT count(*) FROM effects").await, 1, "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rust_and_sql_know_each_others_deliveries() {
    let postgres = shop().await;
    let inbox = Deadpool::open(&postgres.config(), None);
    let consumer = mailer(&inbox).await;
    let told =
        |id: &str| format!("SELECT hapax.first_delivery('mailer', '{id}', 'hello')::int::int8");
    assert_eq!(postgres.number(&told("sql")).await, 1);
    let answer = inbox.enter(&arrival(&consumer, "sql")).await.unwrap();
    assert!(matches!(answer, MessageEntered::Answer(MessageAnswer::Duplicate)), "{answer:?}");
    let MessageEntered::First(First { transaction, .. }) =
        inbox.enter(&arrival(&consumer, "rust")).await.unwrap()
    else {
        panic!("nobody has acted on it")
    };
    let busy = "SELECT hapax.first_delivery('mailer', 'rust', 'hello', wait => '0')";
    let refused = postgres.client().await.query(busy, &[]).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "HX008");
    inbox.leave(transaction, &MessageEnd::Done).await.unwrap();
    assert_eq!(postgres.number(&told("rust")).await, 0);
}
