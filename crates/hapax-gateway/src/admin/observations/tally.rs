//! Counts of what was seen.

use std::collections::BTreeMap;

use hapax_core::Timestamp;
use hapax_tower::{Observation, ObservedVerdict};

use super::documents::{ObservedClientDocument, ObservedDocument, ObservedRouteDocument};
use crate::admin::metrics::RepeatedSums;

/// Most clients that are told apart; what others do is counted together.
pub(super) const CLIENTS_MAX: usize = 1000;

/// Everything that was counted.
#[derive(Debug, Default)]
pub(super) struct ObservedTally {
    routes: BTreeMap<String, RouteTally>,
    clients: BTreeMap<String, ObservedCounts>,
    others: ObservedCounts,
}

/// What was counted of one route.
#[derive(Debug, Default)]
struct RouteTally {
    /// Whether it is observed now.
    is_observed: bool,
    counts: ObservedCounts,
    /// By code, of those that would have been refused.
    refusals: BTreeMap<&'static str, u64>,
}

/// Requests by what would have been done with them.
#[derive(Debug, Default)]
pub(super) struct ObservedCounts {
    /// In the order of [`ObservedVerdict::WORDS`].
    requests: [u64; ObservedVerdict::WORDS.len()],
    /// What those asked for once more that are a second effect.
    amounts: BTreeMap<&'static str, RepeatedSums>,
}

impl ObservedTally {
    pub(super) fn count(&mut self, seen: &Observation, client: &str) {
        let route = self.routes.entry(seen.route.to_string()).or_default();
        route.counts.count(seen);
        if let Some(code) = seen.verdict.code() {
            *route.refusals.entry(code.code()).or_default() += 1;
        }
        let is_known = self.clients.contains_key(client);
        if is_known || self.clients.len() < CLIENTS_MAX {
            self.clients.entry(client.to_owned()).or_default().count(seen);
        } else {
            self.others.count(seen);
        }
    }

    pub(super) fn observe(&mut self, routes: Vec<String>) {
        self.routes.values_mut().for_each(|route| route.is_observed = false);
        for route in routes {
            self.routes.entry(route).or_default().is_observed = true;
        }
    }

    /// Each route with its counts.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&str, &ObservedCounts)> {
        self.routes.iter().map(|(route, tally)| (route.as_str(), &tally.counts))
    }

    pub(super) fn routes(&self) -> Vec<ObservedRouteDocument> {
        let routes = self.routes.iter().map(|(route, tally)| ObservedRouteDocument {
            route: route.clone(),
            observed: tally.is_observed,
            requests: tally.counts.total(),
            what: tally.counts.by_word(),
            refusals: tally.refusals.iter().map(|(code, count)| ((*code).into(), *count)).collect(),
            amounts: tally.counts.amounts(),
            without_amount: tally.counts.amounts.values().map(RepeatedSums::untold).sum(),
        });
        routes.collect()
    }

    /// Those that sent most a second time first.
    pub(super) fn clients(&self) -> Vec<ObservedClientDocument> {
        let clients = self.clients.iter().map(|(client, counts)| counts.of_client(client));
        let mut clients: Vec<_> = clients.collect();
        clients.sort_by_key(|client| std::cmp::Reverse((client.repeated, client.requests)));
        clients
    }

    pub(super) fn other_clients(&self) -> Option<ObservedClientDocument> {
        (self.others.total() > 0).then(|| self.others.of_client("others"))
    }

    pub(super) fn summary(&self, since: Timestamp) -> Option<ObservedDocument> {
        let (mut what, mut amounts) = (BTreeMap::new(), BTreeMap::new());
        for tally in self.routes.values() {
            for (word, count) in tally.counts.by_word() {
                *what.entry(word).or_default() += count;
            }
            for sums in tally.counts.amounts.values() {
                for (currency, amount) in sums.amounts() {
                    *amounts.entry(currency.to_owned()).or_default() += amount;
                }
            }
        }
        let since = since.to_string();
        (!self.routes.is_empty()).then_some(ObservedDocument { since, what, amounts })
    }
}

impl ObservedCounts {
    fn count(&mut self, seen: &Observation) {
        let word = seen.verdict.as_str();
        let words = ObservedVerdict::WORDS.iter().zip(&mut self.requests);
        words.filter(|(known, _)| **known == word).for_each(|(_, count)| *count += 1);
        if let Some(worth) = seen.worth {
            self.amounts.entry(word).or_default().count(worth);
        }
    }

    fn total(&self) -> u64 {
        self.requests.iter().sum()
    }

    /// Every word with its count.
    pub(super) fn words(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ObservedVerdict::WORDS.into_iter().zip(self.requests)
    }

    /// Every word with what was asked for once more, where that is told.
    pub(super) fn sums(&self) -> impl Iterator<Item = (&'static str, &RepeatedSums)> {
        self.amounts.iter().map(|(word, sums)| (*word, sums))
    }

    /// Those that came.
    fn by_word(&self) -> BTreeMap<String, u64> {
        let came = self.words().filter(|(_, count)| *count > 0);
        came.map(|(word, count)| (word.to_owned(), count)).collect()
    }

    fn amounts(&self) -> BTreeMap<String, BTreeMap<String, f64>> {
        let by_currency = |sums: &RepeatedSums| {
            sums.amounts().map(|(currency, amount)| (currency.to_owned(), amount)).collect()
        };
        self.sums().map(|(word, sums)| (word.to_owned(), by_currency(sums))).collect()
    }

    fn of_client(&self, client: &str) -> ObservedClientDocument {
        let second = |word: &&'static str| ObservedVerdict::SECOND_EFFECTS.contains(word);
        ObservedClientDocument {
            client: client.to_owned(),
            requests: self.total(),
            repeated: self.words().filter(|(word, _)| second(word)).map(|(_, count)| count).sum(),
            what: self.by_word(),
            amounts: self.amounts(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn seen(verdict: ObservedVerdict) -> Observation {
        Observation {
            route: Arc::from("POST /pay"),
            verdict,
            tenant: None,
            peer: None,
            worth: None,
        }
    }

    #[test]
    fn so_many_clients_are_told_apart_and_none_is_lost() {
        let mut tally = ObservedTally::default();
        for number in 0..CLIENTS_MAX + 2 {
            tally.count(&seen(ObservedVerdict::Executed), &format!("jwt:{number}"));
        }
        tally.count(&seen(ObservedVerdict::Replayed), "jwt:7");
        let clients = tally.clients();
        assert_eq!(clients.len(), CLIENTS_MAX);
        assert_eq!((clients[0].client.as_str(), clients[0].repeated), ("jwt:7", 1));
        assert_eq!(tally.other_clients().map(|others| others.requests), Some(2));
    }

    #[test]
    fn a_route_that_is_enforced_now_keeps_what_was_seen_of_it() {
        let mut tally = ObservedTally::default();
        assert!(tally.summary(Timestamp::ZERO).is_none());
        tally.observe(vec!["POST /pay".to_owned(), "otherwise".to_owned()]);
        tally.count(&seen(ObservedVerdict::Mismatch), "jwt:a");
        tally.observe(vec!["otherwise".to_owned()]);
        let routes = tally.routes();
        let told: Vec<_> =
            routes.iter().map(|route| (&*route.route, route.observed, route.requests)).collect();
        assert_eq!(told, [("POST /pay", false, 1), ("otherwise", true, 0)]);
        assert_eq!(tally.summary(Timestamp::ZERO).map(|summary| summary.what["mismatch"]), Some(1));
    }
}
