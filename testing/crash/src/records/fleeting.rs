//! Operations that are forgotten within a second, so that whoever dies while purging dies at work.

use std::time::Duration;

use hapax_core::{
    AttemptEnd, InvalidName, Key, Operation, Outcome, Policy, Recovery, RequestParts, RetainFrom,
    Retention, RunMode, TenantKey,
    limits::{LEASE_MIN, RETENTION_MIN},
};
use hapax_engine::{Admission, BeginRequest, Engine};
use tokio::time::sleep;

use super::work::Work;

const PAUSE: Duration = Duration::from_millis(10);
const RETENTION: Retention =
    Retention { window: RETENTION_MIN, from: RetainFrom::Creation, tombstone: Duration::ZERO };

/// Asks for one new operation after the other. What becomes of them is checked by nobody, except
/// that all of them must stay readable.
pub(crate) async fn run(engine: Engine, keys: TenantKey) -> Result<(), InvalidName> {
    #[expect(clippy::expect_used, reason = "the constants above do not contradict each other")]
    let policy = Policy::new(LEASE_MIN, RETENTION, Recovery::Resend)
        .expect("a lease and a retention within the limits");
    loop {
        let key = Key::parse(format!("{:016x}", fastrand::u64(..)))?;
        let ask = BeginRequest {
            operation: Operation::new(Work::tenant()?, Work::fleeting_scope()?, key),
            request: keys.fingerprint(&RequestParts::default()).into(),
            mode: RunMode::Run { request: None },
            policy,
        };
        if let Ok(Admission::Execute(permit)) = engine.begin(&ask).await {
            // Lost ends are swept like those of anybody else.
            let _ = permit.settle(AttemptEnd::completed(Outcome::bare(200))).await;
        }
        sleep(PAUSE).await;
    }
}
