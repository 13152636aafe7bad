//! How far relays are, in lines for people.

use std::time::Duration;

use hapax_core::outbox::OutboxAdmin;
use hapax_messaging::relay::{RelayMeter, RelayStatus};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::{
    store::AnyOutbox,
    table::{grouped, harmless},
};

/// How often it is looked whether something is in the way.
const GLANCE: Duration = Duration::from_secs(1);

/// Says how far each relay is: when something comes in the way or goes, and otherwise every so
/// often, if anything happened.
pub(crate) struct RelayReporter {
    outbox: AnyOutbox,
    every: Duration,
    ticks: Interval,
    told: Vec<ReportedProgress>,
}

struct ReportedProgress {
    meter: RelayMeter,
    at: Instant,
    status: RelayStatus,
    parked: u64,
}

impl RelayReporter {
    pub(crate) fn new(outbox: AnyOutbox, meters: Vec<RelayMeter>, every: Duration) -> Self {
        let mut ticks = interval(GLANCE.min(every));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let at = Instant::now();
        let told = meters.into_iter().map(|meter| {
            let status = meter.status();
            ReportedProgress { meter, at, status, parked: 0 }
        });
        Self { outbox, every, ticks, told: told.collect() }
    }

    /// Ends when there may be something to say, and says it.
    pub(crate) async fn next(&mut self) -> Vec<String> {
        self.ticks.tick().await;
        self.say(self.every).await
    }

    /// What there is to say at the end.
    pub(crate) async fn last(&mut self) -> Vec<String> {
        self.say(Duration::ZERO).await
    }

    async fn say(&mut self, every: Duration) -> Vec<String> {
        let mut lines = Vec::new();
        for told in &mut self.told {
            lines.extend(told.next(&self.outbox, every).await);
        }
        lines
    }
}

impl ReportedProgress {
    async fn next(&mut self, outbox: &AnyOutbox, every: Duration) -> Option<String> {
        let (now, status) = (Instant::now(), self.meter.status());
        let name = harmless(&status.destination);
        if status.trouble.is_some() != self.status.trouble.is_some()
            || status.paused != self.status.paused
        {
            self.status.trouble.clone_from(&status.trouble);
            self.status.paused = status.paused;
            return Some(match (&status.trouble, status.paused) {
                (Some(trouble), _) => format!("{name}: in the way: {}", harmless(trouble)),
                (None, true) => format!("{name}: paused; see `hapax outbox resume`"),
                (None, false) => format!("{name}: goes on"),
            });
        }
        let span = now.duration_since(self.at);
        let parked = self.meter.parked();
        let is_news = status.sent != self.status.sent || parked != self.parked;
        if span < every || !is_news {
            return None;
        }
        // Asked now: what was behind a while ago has been sent since, and would be told twice.
        if let Ok(Some(lag)) = outbox.lag(&status.destination).await {
            self.meter.observe(&lag);
        }
        let parked = self.meter.parked();
        let rate = rate(status.sent - self.status.sent, span);
        let (sent, behind) = (status.sent, self.meter.events_behind());
        (self.at, self.status, self.parked) = (now, status, parked);
        let sent = grouped_count(sent);
        let behind = grouped_count(behind);
        Some(format!("{name}: {sent} sent ({rate}/s), {behind} behind, {parked} parked"))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate is shown, not counted with")]
fn rate(events: u64, span: Duration) -> String {
    grouped(events as f64 / span.as_secs_f64().max(0.001))
}

#[expect(clippy::cast_precision_loss, reason = "it is shown, not counted with")]
fn grouped_count(events: u64) -> String {
    grouped(events as f64)
}
