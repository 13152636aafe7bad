//! Keys in doubt, as they are stored: they wait for somebody, whichever process left them so.

use std::{collections::BTreeMap, time::Duration};

use hapax_core::{
    StateTag, StoreError, Timestamp,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Page, Summary},
};
use hapax_engine::Engine;
use hapax_tower::Routes;
use tokio::time::Instant;

use super::exposition::Exposition;
use crate::admin::documents::RouteDoubtsDocument;

/// Most keys that are looked at; where there are more, they are not told apart from as many.
const DOUBTS_COUNTED_MAX: usize = 10_000;

/// The label of keys that came by no route of this gateway.
const ELSEWHERE: &str = "elsewhere";

/// How long a key has been in doubt: less than this, in words.
const AGES: [(&str, Duration); 4] = [
    ("under_1m", Duration::from_secs(60)),
    ("under_1h", Duration::from_secs(60 * 60)),
    ("under_1d", Duration::from_secs(24 * 60 * 60)),
    ("over_1d", Duration::MAX),
];

/// What was seen when somebody last looked.
#[derive(Debug, Clone)]
pub(in crate::admin) struct Doubts {
    by_route: BTreeMap<String, RouteDoubts>,
    at: Instant,
}

/// The keys of one route.
#[derive(Debug, Clone, Copy, Default)]
struct RouteDoubts {
    by_age: [u64; AGES.len()],
    oldest: Duration,
}

impl Doubts {
    /// Looks in the store, for no more than [`DOUBTS_COUNTED_MAX`] keys.
    pub(super) async fn look(engine: &Engine, routes: &Routes) -> Result<Self, StoreError> {
        let labels = routes.labels().into_iter().chain([ELSEWHERE.to_owned()]);
        let by_route = labels.map(|label| (label, RouteDoubts::default())).collect();
        let mut doubts = Self { by_route, at: Instant::now() };
        let filter = Filter { state: Some(StateTag::InDoubt), ..Filter::default() };
        let now = engine.store().clock().await?.now;
        let (mut after, mut counted) = (None, 0);
        while counted < DOUBTS_COUNTED_MAX {
            let page = Page { after, limit: PAGE_RECORDS_MAX };
            let listed = engine.store().list(filter.clone(), page).await?;
            let Some(last) = listed.last().map(|listed| listed.id) else { break };
            for summary in listed.iter().filter_map(|listed| listed.summary.as_ref().ok()) {
                doubts.count(routes, summary, now);
            }
            (after, counted) = (Some(last), counted + listed.len());
            if listed.len() < PAGE_RECORDS_MAX {
                break;
            }
        }
        Ok(doubts)
    }

    /// How many keys there are.
    pub(in crate::admin) fn keys(&self) -> u64 {
        self.by_route.values().flat_map(|seen| seen.by_age).sum()
    }

    /// For how long the oldest has been in doubt.
    pub(in crate::admin) fn oldest(&self) -> Duration {
        self.by_route.values().map(|seen| seen.oldest).max().unwrap_or_default()
    }

    /// How long ago somebody looked.
    pub(in crate::admin) fn age(&self) -> Duration {
        self.at.elapsed()
    }

    /// Route by route, those without any too.
    pub(in crate::admin) fn by_route(&self) -> Vec<RouteDoubtsDocument> {
        let routes = self.by_route.iter().map(|(route, seen)| RouteDoubtsDocument {
            route: route.clone(),
            by_age: AGES.iter().map(|(age, _)| (*age).to_owned()).zip(seen.by_age).collect(),
            oldest_seconds: seen.oldest.as_secs_f64(),
        });
        routes.collect()
    }

    fn count(&mut self, routes: &Routes, summary: &Summary, now: Timestamp) {
        let label = routes.label_of(summary.operation.scope()).unwrap_or(ELSEWHERE);
        let Some(seen) = self.by_route.get_mut(label) else { return };
        let age = now.after(summary.changed_at);
        let column = AGES.iter().position(|(_, below)| age < *below).unwrap_or(AGES.len() - 1);
        seen.by_age[column] += 1;
        seen.oldest = seen.oldest.max(age);
    }
}

/// Every metric of keys in doubt; without samples before anybody has looked.
pub(super) fn write(page: &mut Exposition, doubts: Option<&Doubts>) {
    let by_route = || doubts.iter().flat_map(|doubts| &doubts.by_route);
    let help = "Keys stored as in doubt, by route and by how long they have been.";
    let keys = page.gauge("hapax_keys_in_doubt", help);
    for (route, seen) in by_route() {
        for ((age, _), count) in AGES.iter().zip(seen.by_age) {
            keys.sample(&[("route", route), ("age", age)], count);
        }
    }
    let help = "How long the oldest key in doubt of a route has been; 0 if there is none.";
    let oldest = page.gauge("hapax_keys_in_doubt_oldest_seconds", help);
    for (route, seen) in by_route() {
        oldest.sample(&[("route", route)], seen.oldest.as_secs_f64());
    }
    let help = "How long ago keys in doubt were last looked for with success.";
    let looked = page.gauge("hapax_keys_in_doubt_looked_seconds", help);
    if let Some(doubts) = doubts {
        looked.sample(&[], doubts.at.elapsed().as_secs_f64());
    }
}
