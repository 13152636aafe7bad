//! Sending one event at a time per key, and many keys at once.

use std::collections::HashMap;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use hapax_core::outbox::Stored;

use super::{Outage, Verdict};

/// Sends each key's events one after the other, and up to `at_once` keys at the same time; what is
/// behind one that was not taken is not sent.
///
/// An outage ends the call at once: what was under way is dropped.
pub async fn in_chains<'a, S, F>(
    events: &'a [Stored],
    at_once: usize,
    send: S,
) -> Result<Vec<Verdict>, Outage>
where
    S: Fn(&'a Stored) -> F,
    F: Future<Output = Result<Verdict, Outage>>,
{
    let send = &send;
    let chains = chains(events).into_iter().map(|chain| async move {
        let mut verdicts = Vec::with_capacity(chain.len());
        for at in chain {
            let behind = verdicts.last().is_some_and(|(_, last)| *last != Verdict::Taken);
            let verdict = if behind { Verdict::Behind } else { send(&events[at]).await? };
            verdicts.push((at, verdict));
        }
        Ok::<_, Outage>(verdicts)
    });
    let mut verdicts = vec![Verdict::Behind; events.len()];
    let mut done = std::pin::pin!(stream::iter(chains).buffer_unordered(at_once.max(1)));
    while let Some(chain) = done.try_next().await? {
        for (at, verdict) in chain {
            verdicts[at] = verdict;
        }
    }
    Ok(verdicts)
}

/// Which events belong to one key, in their order; keys in the order of their first events.
fn chains(events: &[Stored]) -> Vec<Vec<usize>> {
    let mut chains: Vec<Vec<usize>> = Vec::new();
    let mut found: HashMap<(&str, &str), usize> = HashMap::with_capacity(events.len());
    for (at, event) in events.iter().enumerate() {
        let chain = *found.entry((&event.topic, &event.key)).or_insert(chains.len());
        match chains.get_mut(chain) {
            Some(chain) => chain.push(at),
            None => chains.push(vec![at]),
        }
    }
    chains
}
