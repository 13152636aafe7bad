//! The report as tables, and as sentences for whoever decides.

use std::collections::BTreeMap;

use hapax::tower::ObservedVerdict;
use hapax_gateway::admin::documents::{ObservationsDocument, ObservedClientDocument};

use super::advice::{advice, of, requests};
use crate::{
    report::{ChartedReport, Section},
    table::harmless,
};

/// Most clients that are listed.
const CLIENTS_LISTED_MAX: usize = 20;

/// What would have been done, in plain words.
const MEANINGS: [(&str, &str); 13] = [
    ("executed", "run, as it was"),
    ("replayed", "answered from the record; instead it was done a second time"),
    ("busy", "told that the first is at work; instead it was sent a second time"),
    (
        "in_doubt",
        "held or found out about, as nobody heard the answer to the first; instead it was sent a second time",
    ),
    ("replayed_failure", "answered from the record: the first had been refused for good"),
    ("mismatch", "refused (422): its key had been used for another request"),
    ("gone", "refused (410): its key is too old"),
    ("key_missing", "refused (400), or passed where keys are optional: it has no key"),
    ("key_missing_again", "the same, and it looks like a retry: its client had just sent the same"),
    ("key_malformed", "refused (400): its key cannot be read"),
    ("tenant_unknown", "refused (401): nobody knows whose it is"),
    ("tenant_unknown_again", "the same, and the same request had come before"),
    ("refused", "refused for another reason"),
];

/// Sums by currency.
type Amounts = BTreeMap<String, f64>;

pub(super) fn report(seen: &ObservationsDocument) -> ChartedReport {
    let total: u64 = seen.routes.iter().map(|route| route.requests).sum();
    ChartedReport {
        title: "What Hapax would have done",
        subject: format!("{} watched from {} to {}", requests(total), seen.since, seen.now),
        sections: vec![outcomes(seen), routes(seen), clients(seen), next(seen)],
    }
}

fn outcomes(seen: &ObservationsDocument) -> Section {
    let rows = MEANINGS.iter().filter_map(|(word, meaning)| {
        let count: u64 = seen.routes.iter().map(|route| of(route, word)).sum();
        let amounts = summed(seen.routes.iter().filter_map(|route| route.amounts.get(*word)));
        (count > 0).then(|| vec![(*meaning).to_owned(), count.to_string(), in_words(&amounts)])
    });
    Section {
        title: "What would have been done",
        header: vec!["a request would have been", "requests", "worth"],
        rows: rows.collect(),
        notes: headline(seen),
        chart: None,
    }
}

/// What a person should know who reads no further.
fn headline(seen: &ObservationsDocument) -> Vec<String> {
    let count = |words: &[&str]| -> u64 {
        let routes = seen.routes.iter();
        routes.map(|route| words.iter().map(|word| of(route, word)).sum::<u64>()).sum()
    };
    let twice = count(&ObservedVerdict::SECOND_EFFECTS);
    let stopped = count(&["replayed", "busy", "in_doubt"]);
    let mut notes = vec![match twice {
        0 => "No request was seen to be sent a second time.".to_owned(),
        twice => format!(
            "{} sent to the API a second time, and may have had a second effect. Enforced, {stopped} of \
             them would not have been.",
            was(twice)
        ),
    }];
    let worth = |words: &[&str]| {
        let told = seen.routes.iter().flat_map(|route| &route.amounts);
        summed(told.filter(|(word, _)| words.contains(&word.as_str())).map(|(_, sums)| sums))
    };
    let charged = worth(&["replayed"]);
    if !charged.is_empty() {
        notes.push(format!("Would have been charged twice, for certain: {}.", in_words(&charged)));
    }
    let maybe = worth(&["busy", "in_doubt", "key_missing_again", "tenant_unknown_again"]);
    if !maybe.is_empty() {
        let sums = in_words(&maybe);
        notes.push(format!("Perhaps too, as nobody knows what became of the first: {sums}."));
    }
    let untold: u64 = seen.routes.iter().map(|route| route.without_amount).sum();
    if untold > 0 {
        notes.push(format!("{} more do not say what they are worth.", requests(untold)));
    }
    if seen.keys_forgotten > 0 {
        notes.push(format!(
            "{} of the oldest keys were forgotten before their time, as no more than {} are remembered: this \
             is the least that happened.",
            seen.keys_forgotten, seen.keys_max
        ));
    }
    notes.push("Counted since the gateway was started: a restart begins anew.".to_owned());
    notes
}

fn routes(seen: &ObservationsDocument) -> Section {
    let rows = seen.routes.iter().map(|route| {
        let sum = |words: &[&str]| words.iter().map(|word| of(route, word)).sum::<u64>();
        vec![
            harmless(&route.route),
            if route.observed { "observe" } else { "enforce" }.to_owned(),
            route.requests.to_string(),
            sum(&ObservedVerdict::SECOND_EFFECTS).to_string(),
            in_words(&summed(route.amounts.values())),
            of(route, "mismatch").to_string(),
            sum(&["key_missing", "key_missing_again"]).to_string(),
            sum(&["tenant_unknown", "tenant_unknown_again"]).to_string(),
            sum(&["key_malformed", "refused", "gone"]).to_string(),
        ]
    });
    Section {
        title: "By route",
        header: vec![
            "route",
            "mode",
            "requests",
            "sent twice",
            "worth",
            "another request",
            "no key",
            "whose?",
            "refused",
        ],
        rows: rows.collect(),
        notes: Vec::new(),
        chart: None,
    }
}

fn clients(seen: &ObservationsDocument) -> Section {
    let listed = seen.clients.iter().take(CLIENTS_LISTED_MAX);
    let mut notes = Vec::new();
    if let Some(more @ 1..) = seen.clients.len().checked_sub(CLIENTS_LISTED_MAX) {
        notes.push(format!("{more} more clients sent less a second time; `--json` lists them."));
    }
    if let Some(others) = &seen.other_clients {
        let (all, max) = (requests(others.requests), seen.clients_max);
        notes.push(format!("{all} came from clients beyond the {max} that are told apart."));
    }
    Section {
        title: "By client",
        header: vec![
            "client",
            "requests",
            "sent twice",
            "worth",
            "another request",
            "without a key",
            "of them retries",
        ],
        rows: listed.map(client).collect(),
        notes,
        chart: None,
    }
}

fn client(client: &ObservedClientDocument) -> Vec<String> {
    let count = |word| client.what.get(word).copied().unwrap_or(0);
    vec![
        harmless(&client.client),
        client.requests.to_string(),
        client.repeated.to_string(),
        in_words(&summed(client.amounts.values())),
        count("mismatch").to_string(),
        (count("key_missing") + count("key_missing_again")).to_string(),
        count("key_missing_again").to_string(),
    ]
}

fn next(seen: &ObservationsDocument) -> Section {
    Section {
        title: "What to do next",
        header: Vec::new(),
        rows: Vec::new(),
        notes: advice(seen),
        chart: None,
    }
}

fn was(count: u64) -> String {
    match count {
        1 => "1 request was".to_owned(),
        count => format!("{count} requests were"),
    }
}

fn summed<'a>(all: impl Iterator<Item = &'a Amounts>) -> Amounts {
    let mut sums = Amounts::new();
    for (currency, amount) in all.flatten() {
        *sums.entry(currency.clone()).or_default() += amount;
    }
    sums
}

/// `12.50 EUR, 3.00 USD`; a dash for nothing.
fn in_words(amounts: &Amounts) -> String {
    let sums = amounts.iter().map(|(currency, amount)| match currency.as_str() {
        "none" => format!("{amount:.2}"),
        currency => format!("{amount:.2} {currency}"),
    });
    let sums: Vec<_> = sums.collect();
    if sums.is_empty() { "-".to_owned() } else { sums.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_meaning() {
        let mut words = MEANINGS.map(|(word, _)| word);
        let mut all = ObservedVerdict::WORDS;
        words.sort_unstable();
        all.sort_unstable();
        assert_eq!(words, all);
    }
}
