//! A worker that charges every order once, however often it is killed.
#![expect(clippy::print_stdout, reason = "this is a program for people")]

use std::{env, error::Error, process::ExitCode, sync::Arc, time::Duration};

use hapax::{
    Client,
    client::{Answer, CallError, PursuitEvent, Watch},
};
use serde_json::json;
use tokio::time::{interval, sleep};

/// Orders and what they cost, in cents.
const ORDERS: [(&str, u64); 5] = [
    ("order-1001", 1_250),
    ("order-1002", 9_900),
    ("order-1003", 480),
    ("order-1004", 2_500),
    ("order-1005", 31_000),
];
/// How often an order comes in: slowly enough to kill this program in between.
const EVERY: Duration = Duration::from_secs(1);
const USAGE: &str = "say where payments are made: client-rust http://127.0.0.1:PORT [JOURNAL]";

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let url = format!("{}/payments", arguments.next().ok_or(USAGE)?.trim_end_matches('/'));
    let journal = arguments.next().unwrap_or_else(|| "client-rust.db".to_owned());
    let client = Client::builder()
        .journal(&journal)
        .header("Authorization", "Bearer shop-1") // sent with every request, never written to disk
        .build()?;

    let resumed = client.resume().await?;
    for name in &resumed.done {
        println!("{name}: begun by an earlier run, and charged");
    }
    let mut orders = interval(EVERY);
    let mut all_charged = true;
    for (order, cents) in ORDERS {
        orders.tick().await;
        all_charged &= report(order, charge(&client, &url, order, cents).await);
    }
    Ok(if all_charged { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Charges an order; if an earlier run has been at it a moment ago, as soon as that is surely over.
async fn charge(
    client: &Client,
    url: &str,
    order: &'static str,
    cents: u64,
) -> Result<Answer, CallError> {
    loop {
        let payment = json!({ "account": "ada", "amount": cents, "reference": order });
        let call = client.operation(order).post(url).json(&payment);
        // The API can be asked for a payment by its reference, so that is the key too.
        match call.key(order).watch(Arc::new(Aloud(order))).send().await {
            Err(CallError::Held { ends_in, .. }) => {
                println!("{order}: an earlier run may be at it; waiting {ends_in:.1?}");
                sleep(ends_in).await;
            }
            ended => return ended,
        }
    }
}

/// Says what came of an order, and whether it is charged.
fn report(order: &str, ended: Result<Answer, CallError>) -> bool {
    match ended {
        Ok(answer) if answer.recorded() => println!("{order}: charged before, says the journal"),
        Ok(answer) => {
            let (attempts, replayed) = (answer.attempts(), answer.replayed());
            println!("{order}: charged; attempts: {attempts}, replayed: {replayed}");
        }
        Err(CallError::Refused(answer)) => {
            println!("{order}: refused with {}: {}", answer.status(), answer.text().trim());
            return false;
        }
        // Unknown, given up or not sent: the text says which. Run it again.
        Err(error) => {
            println!("{order}: {error}");
            return false;
        }
    }
    true
}

/// Tells of every attempt as it ends.
struct Aloud(&'static str);

impl Watch for Aloud {
    fn saw(&self, event: PursuitEvent<'_>) {
        let order = self.0;
        match event {
            PursuitEvent::Begun { .. } => {}
            PursuitEvent::Ended { attempt, status: Some(status), .. } => {
                println!("{order}: attempt {attempt} was answered with {status}");
            }
            PursuitEvent::Ended { attempt, result, status: None, .. } => {
                println!("{order}: attempt {attempt} was not answered ({result:?})");
            }
            PursuitEvent::Pausing { pause, .. } => println!("{order}: again in {pause:.1?}"),
        }
    }
}
