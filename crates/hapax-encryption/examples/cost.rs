//! What encryption adds to one operation: an answer of 512 bytes is sealed once and opened once.
//!
//! `cargo run --release -p hapax-encryption --example cost` compares the same operations on the same store with and
//! without, by the time that the processor spent on them: what else runs on the machine does not count. Needs Linux.
#![expect(clippy::print_stdout, reason = "the figure is what it is for")]

use std::{error::Error, fs, time::Duration};

use bytes::Bytes;
use hapax_core::{
    Arrival, Attempt, AttemptEnd, Body, Decision, Fingerprint, Header, Key, Operation, Outcome,
    Owner, Policy, RunMode, Salt, Scope, Store, Tenant, Timestamp, decide, memory, settle,
    store::Write,
};
use hapax_encryption::{EncryptedStore, Encryption, LocalMasterKey};

const OPERATIONS: u32 = 20_000;
/// Rounds of each, in turn; the fastest counts, which others disturbed least.
const ROUNDS: usize = 7;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (mut clear, mut encrypted) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        clear = clear.min(round(&memory()).await?);
        let encryption = Encryption::new(LocalMasterKey::from_bytes(&[7; 32]));
        encrypted = encrypted.min(round(&EncryptedStore::new(memory(), encryption).await?).await?);
    }
    let micros = |span: Duration| span.as_secs_f64() * 1e6 / f64::from(OPERATIONS);
    println!(
        "claim, settle with 512 bytes, load: {:.2} us clear, {:.2} us encrypted, {:.2} us added",
        micros(clear),
        micros(encrypted),
        micros(encrypted) - micros(clear)
    );
    Ok(())
}

fn memory() -> memory::Store {
    memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::from_micros(1_000_000))
}

async fn round(store: &impl Store) -> Result<Duration, Box<dyn Error>> {
    let (tenant, scope) = (Tenant::parse("acme")?, Scope::parse("POST /payments")?);
    let kind = Header { name: "content-type".to_owned(), value: "application/json".into() };
    let outcome = Outcome::new(201, vec![kind], Body::Kept(Bytes::from(vec![b'a'; 512])))?;
    let policy = Policy::default();
    let began = on_processor()?;
    for number in 0..OPERATIONS {
        let key = Key::parse(format!("9f1c2d3e-4b5a-4c7d-8e9f-{number:012}"))?;
        let operation = Operation::new(tenant.clone(), scope.clone(), key);
        let id = operation.id();
        let fingerprint = Fingerprint::from_bytes([3; Fingerprint::BYTES]);
        let mode = RunMode::Run { request: None };
        let arrival = Arrival { operation, fingerprint, owner: Owner(1), mode };
        let Decision::Execute(claim) = decide(Timestamp::ZERO, &arrival, None, &policy) else {
            return Err("a new key must execute".into());
        };
        let attempt = Attempt { id, fence: claim.fence, owner: claim.owner };
        let end = settle(&attempt, AttemptEnd::completed(outcome.clone()), &policy);
        for write in [Write::Claim(claim), Write::Settle(end)] {
            for answer in store.commit(vec![write]).await {
                answer?;
            }
        }
        for loaded in store.load(vec![id]).await {
            loaded?;
        }
    }
    Ok(on_processor()? - began)
}

/// How long this thread, which is the only one, has been on a processor.
fn on_processor() -> Result<Duration, Box<dyn Error>> {
    let told = fs::read_to_string("/proc/self/schedstat")?;
    let nanos = told.split_whitespace().next().ok_or("the system does not count")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}
