//! The metrics of a running gateway, as Prometheus reads them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use crate::world::{Gateway, ask};

/// One page of metrics.
pub(crate) struct Scrape {
    /// By series as it is written.
    samples: BTreeMap<String, String>,
}

impl Scrape {
    pub(crate) async fn of(gateway: &Gateway) -> Self {
        Self::at(gateway.admin).await
    }

    /// What is shown there.
    pub(crate) async fn at(admin: SocketAddr) -> Self {
        let answer = ask(admin, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let page = answer.text().to_owned();
        let lines = page.lines().filter(|line| !line.starts_with('#'));
        let samples = lines.map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series.to_owned(), value.to_owned())
        });
        Self { samples: samples.collect() }
    }

    pub(crate) fn value(&self, series: &str) -> Option<String> {
        self.samples.get(series).cloned()
    }

    /// Every series and its value.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (&str, &str)> {
        self.samples.iter().map(|(series, value)| (series.as_str(), value.as_str()))
    }

    /// Whether there is a series of this name with these labels, and others perhaps.
    pub(crate) fn has(&self, wanted: &Selector) -> bool {
        self.samples.keys().any(|series| {
            let there = Selector::parse(series);
            there.name == wanted.name && wanted.labels.is_subset(&there.labels)
        })
    }

    /// Whether there is a series of this name with labels of these names, and no others.
    pub(crate) fn has_shape(&self, wanted: &Selector) -> bool {
        self.samples.keys().any(|series| {
            let there = Selector::parse(series);
            there.name == wanted.name && there.label_names() == wanted.label_names()
        })
    }
}

/// A metric's name and some of its labels.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Selector {
    pub(crate) name: String,
    pub(crate) labels: BTreeSet<(String, String)>,
}

impl Selector {
    /// From `name{label="value",...}`; what the labels hold has no quotes here.
    pub(crate) fn parse(text: &str) -> Self {
        let (name, labels) = text.split_once('{').unwrap_or((text, ""));
        let quoted: Vec<_> = labels.trim_end_matches('}').split('"').collect();
        let labels = quoted.chunks_exact(2).map(|pair| {
            let label = pair[0].trim_start_matches(',').trim_end_matches('=');
            (label.to_owned(), pair[1].to_owned())
        });
        Self { name: name.to_owned(), labels: labels.collect() }
    }

    /// Without what Prometheus itself adds to what it scrapes.
    pub(crate) fn scraped(mut self) -> Self {
        self.labels.retain(|(label, _)| label != "instance" && label != "job");
        self
    }

    fn label_names(&self) -> BTreeSet<&str> {
        self.labels.iter().map(|(label, _)| label.as_str()).collect()
    }
}
