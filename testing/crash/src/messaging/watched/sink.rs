use std::{
    collections::{HashMap, HashSet},
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use hapax_core::outbox::Stored;
use hapax_messaging::sink::{Outage, Sink, Verdict};
use tokio::time::sleep;

use crate::place::Doom;

/// How a sink of a victim behaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct SinkManners {
    /// It refuses some events, and so they are parked.
    pub choosy: bool,
    /// It takes events for sent before they are, which is wrong.
    pub hasty: bool,
}

/// One event in so many is refused by a sink that is choosy.
const REFUSED: u8 = 32;
/// How long a hasty sink takes its time.
const HASTE: Duration = Duration::from_millis(120);

/// A sink whose relay may die right before and right after each call.
#[derive(Debug)]
pub struct WatchedSink<S> {
    sink: Arc<S>,
    doom: Doom,
    manners: SinkManners,
}

impl<S: Sink> WatchedSink<S> {
    /// The sink, with that end awaiting its relay.
    pub fn new(sink: S, doom: Doom, manners: SinkManners) -> Self {
        Self { sink: Arc::new(sink), doom, manners }
    }

    /// Sends what it does not refuse; behind what was not taken, nothing of the same key is sent.
    async fn choose(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        let mut stuck = HashSet::new();
        let is_wanted = |event: &&Stored| {
            if is_refused(event) {
                stuck.insert(event.key.clone());
            }
            !stuck.contains(&event.key)
        };
        let wanted: Vec<_> = events.iter().filter(is_wanted).cloned().collect();
        let sent = self.sink.send(&wanted).await?;
        let mut sent: HashMap<_, _> = wanted.iter().map(|event| event.id).zip(sent).collect();
        let mut stuck = HashSet::new();
        let judge = |event: &Stored| {
            if stuck.contains(&event.key) {
                return Verdict::Behind;
            }
            let refused = || Verdict::Refused("it is not to this taste".to_owned());
            let verdict = sent.remove(&event.id).unwrap_or_else(refused);
            if verdict != Verdict::Taken {
                stuck.insert(event.key.clone());
            }
            verdict
        };
        Ok(events.iter().map(judge).collect())
    }

    fn promise(&self, events: &[Stored]) -> Vec<Verdict> {
        let (sink, later) = (Arc::clone(&self.sink), events.to_vec());
        tokio::spawn(async move {
            sleep(HASTE).await;
            // Nobody is left to be told.
            let _ = sink.send(&later).await;
        });
        vec![Verdict::Taken; events.len()]
    }
}

impl<S: Sink> Sink for WatchedSink<S> {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        let call = async {
            match self.manners {
                SinkManners { hasty: true, .. } => Ok(self.promise(events)),
                SinkManners { choosy: true, .. } => self.choose(events).await,
                SinkManners { .. } => self.sink.send(events).await,
            }
        };
        let call = async {
            let verdicts = call.await;
            tell(events, &verdicts);
            verdicts
        };
        self.doom.around("sink.send", call).await
    }
}

fn is_refused(event: &Stored) -> bool {
    event.id.as_bytes()[0].is_multiple_of(REFUSED)
}

/// For whoever wants to know afterwards what a victim did: it goes to its log.
fn tell(events: &[Stored], verdicts: &Result<Vec<Verdict>, Outage>) {
    let mut lines = String::new();
    for (at, Stored { id, position, topic, key, .. }) in events.iter().enumerate() {
        let verdict = match verdicts {
            Ok(verdicts) => format!("{:?}", verdicts.get(at)),
            Err(outage) => outage.to_string(),
        };
        lines.push_str(&format!("send {topic}/{key} {position} {id}: {verdict}\n"));
    }
    let _ = io::stderr().write_all(lines.as_bytes());
}
