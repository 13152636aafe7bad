//! The server under test is killed, started, slowed and waited for.

use std::time::Duration;

use tokio::{
    io::AsyncReadExt,
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use crate::{ExamRequest, Examiner, Exchange, Hook, HttpAddress, ProbeInterruption, ProbeLog};

mod kill_trial;
mod slowable;

pub(crate) use self::{
    kill_trial::{KillMoment, KillTrial},
    slowable::Slowable,
};

/// How long the end of a server that was killed is looked for.
const END_PATIENCE: Duration = Duration::from_secs(3);
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Waits are slept in parts, so that an examination that is cancelled ends soon.
const SLEEP_PART: Duration = Duration::from_millis(200);
/// A server was told to end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerEnd {
    /// How long it took to tell it.
    pub(crate) lead: Duration,
    /// Whether it was seen to be gone.
    pub(crate) is_seen: bool,
}

/// Same failures in a row by which a retry is told that the failure is what was kept.
const SAME_FAILURES: u32 = 5;

impl Examiner {
    /// Kills the server, and waits until it is gone, or is likely to have been started again by somebody else.
    pub(crate) async fn kill_server(&self, log: &ProbeLog) -> Result<ServerEnd, ProbeInterruption> {
        let began = Instant::now();
        self.hook(self.examination().hooks.kill.as_ref(), "kills the server").await?;
        let lead = began.elapsed();
        log.note("the server was killed");
        let until = Instant::now() + END_PATIENCE;
        while takes_connections(self.address()).await {
            if Instant::now() >= until {
                log.note("it still takes connections");
                return Ok(ServerEnd { lead, is_seen: false });
            }
            sleep(LOOK_AGAIN).await;
        }
        Ok(ServerEnd { lead, is_seen: true })
    }

    /// The same while nothing else is asked: one that somebody else starts again at once is also seen to end.
    pub(crate) async fn kill_server_at_rest(
        &self,
        log: &ProbeLog,
    ) -> Result<bool, ProbeInterruption> {
        let address = self.address();
        let idle = TcpStream::connect((address.host.as_str(), address.port)).await.ok();
        let is_gone = self.kill_server(log).await?.is_seen;
        let Some(mut idle) = idle else { return Ok(is_gone) };
        let closing = timeout(END_PATIENCE, idle.read_u8());
        Ok(is_gone || closing.await.is_ok_and(|end| end.is_err()))
    }

    /// Starts the server, and waits until all its addresses take connections.
    pub(crate) async fn start_server(&self, log: &ProbeLog) -> Result<(), ProbeInterruption> {
        self.hook(self.examination().hooks.start.as_ref(), "starts the server").await?;
        let began = Instant::now();
        let recovery = self.examination().bounds.recovery;
        for address in &self.api().addresses {
            while !takes_connections(address).await {
                if began.elapsed() >= recovery {
                    return Err(ProbeInterruption::Hook(format!(
                        "{address} takes no connections within {} s after the server was started",
                        recovery.as_secs_f32()
                    )));
                }
                sleep(LOOK_AGAIN).await;
            }
        }
        log.note("the server was started, and takes connections");
        Ok(())
    }

    /// Makes the server slow, if there is a way; how long its executions take then.
    pub(crate) async fn slow_server(&self) -> Result<Option<Duration>, ProbeInterruption> {
        let hooks = &self.examination().hooks;
        if hooks.slow.is_none() {
            return Ok(None);
        }
        self.hook(hooks.slow.as_ref(), "makes the server slow").await?;
        Ok(Some(hooks.slowness()))
    }

    /// Ends that.
    pub(crate) async fn fast_server(&self) -> Result<(), ProbeInterruption> {
        self.hook(self.examination().hooks.fast.as_ref(), "makes the server fast again").await
    }

    /// Does something to the server, if there is a way.
    pub(crate) async fn hook(
        &self,
        hook: Option<&Hook>,
        purpose: &str,
    ) -> Result<(), ProbeInterruption> {
        match hook {
            Some(hook) => hook.run(self.wire(), purpose, self.examination().hooks.slowness()).await,
            None => Ok(()),
        }
    }

    /// Retries until a success or a refusal that no retry changes, at most for as long as keys may be stuck.
    ///
    /// All the retries; where an effect is there and the same failure is heard again and again, it is what was kept,
    /// and it ends before.
    pub(crate) async fn retry_until_success(
        &self,
        log: &ProbeLog,
        label: &str,
        request: &ExamRequest,
    ) -> Result<Vec<Exchange>, ProbeInterruption> {
        let until = Instant::now() + self.examination().bounds.recovery;
        let mut wait = LOOK_AGAIN;
        let mut retries: Vec<Exchange> = Vec::new();
        let mut same_failures = 0;
        loop {
            let retry = self.ask(log, label, request).await;
            let is_same = retries.last().is_some_and(|last| is_same_failure(last, &retry));
            let comes_back = retry.answer().is_some_and(|answer| self.comes_back(answer));
            let is_over = is_final(&retry) && !comes_back;
            retries.push(retry);
            same_failures = if is_same { same_failures + 1 } else { 0 };
            if is_over || Instant::now() + wait >= until || self.is_cancelled() {
                return Ok(retries);
            }
            if same_failures >= SAME_FAILURES
                && self.effects_now(&request.marker).await?.is_some_and(|effects| effects > 0)
            {
                return Ok(retries);
            }
            sleep(wait).await;
            wait = (wait * 2).min(Duration::from_millis(500));
        }
    }

    /// Whether an operation that nobody has asked for succeeds, at last.
    pub(crate) async fn is_well(&self, log: &ProbeLog) -> Result<bool, ProbeInterruption> {
        let other = self.fresh()?;
        let asked = self.retry_until_success(log, "another key", &other).await?;
        Ok(asked.last().is_some_and(Exchange::succeeded))
    }

    /// Waits, and ends before if the examination does.
    pub(crate) async fn rest_for(&self, duration: Duration) -> Result<(), ProbeInterruption> {
        let until = Instant::now() + duration;
        loop {
            if self.is_cancelled() {
                return Err(ProbeInterruption::Cancelled);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            sleep(left.min(SLEEP_PART)).await;
        }
    }
}

/// Whether somebody listens there.
async fn takes_connections(address: &HttpAddress) -> bool {
    let connecting = TcpStream::connect((address.host.as_str(), address.port));
    let Ok(Ok(stream)) = timeout(CONNECT_PATIENCE, connecting).await else { return false };
    // Where nobody listens on a port of those that clients are given, a client can meet itself.
    stream.local_addr().ok() != stream.peer_addr().ok()
}

/// Whether no retry changes this. Who is on the way up may answer much that is not meant for us, as 404.
fn is_final(exchange: &Exchange) -> bool {
    exchange.succeeded() || matches!(exchange.status(), Some(400 | 401 | 403 | 410 | 422))
}

fn is_same_failure(before: &Exchange, now: &Exchange) -> bool {
    let status = now.status();
    status == before.status() && matches!(status, Some(500..=599))
}
