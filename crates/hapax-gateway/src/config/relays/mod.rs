//! Where events are published: every `[[relay]]` of a gateway's file, and the file of a relay that
//! runs alone.
//!
//! - `place`: [`Place`], the address of something that takes events;
//! - `alone`: [`RelayFile`], a file of nothing but destinations;
//! - here: what is said about one of them.

mod alone;
mod place;

use std::{collections::BTreeSet, env, fmt, path::Path, time::Duration};

use hapax_core::{
    limits::RETRY_ATTEMPTS_MAX,
    outbox::{Destination, Start, Topics},
    retry::Schedule,
};
use hapax_messaging::{
    relay::{OnFailure, RelayOptions},
    sink::CloudEvents,
};
use toml::Spanned;

pub use self::{
    alone::RelayFile,
    place::{InvalidPlace, Place},
};
use super::{
    files,
    names::RELAY,
    reader::{At, Reader},
};

/// Most destinations of one file: each has connections of its own.
const RELAYS_MAX: usize = 100;
/// Shortest lease: a relay has to renew it some times before it ends.
pub const LEASE_MIN: Duration = Duration::from_secs(1);

/// A destination, and how its events are sent there.
#[derive(Clone)]
pub struct RelayConfig {
    /// Its name, under which its progress is kept, and the topics it wants.
    pub destination: Destination,
    /// Where it is.
    pub place: Place,
    /// Where it begins, the first time.
    pub start: Start,
    /// How patient the relay is, and what becomes of events that are not taken.
    pub options: RelayOptions,
    /// What its events say about where they come from.
    pub events: CloudEvents,
    /// What its events are signed with, the newest first; of webhooks alone.
    pub secrets: Vec<String>,
    /// The exchange events go to; of RabbitMQ alone.
    pub exchange: String,
    /// What is put before topics; of NATS and Kafka alone.
    pub prefix: String,
}

impl fmt::Debug for RelayConfig {
    /// Leaves out what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut config = f.debug_struct("RelayConfig");
        config.field("destination", &self.destination).field("place", &self.place.to_string());
        config.finish_non_exhaustive()
    }
}

impl fmt::Display for RelayConfig {
    /// In one line, without anything secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { destination, place, options, .. } = self;
        let topics = destination.topics().patterns().join(", ");
        let failing = match options.on_failure {
            OnFailure::Block => "keeps its key waiting",
            OnFailure::ParkMessage => "is parked alone",
            OnFailure::ParkTail => "is parked with its key's tail",
        };
        write!(f, "{}: {topics} to {place}; what is not taken {failing}", destination.name())
    }
}

/// The words of `on_failure`.
pub const ON_FAILURE: [(&str, OnFailure); 3] = [
    ("block", OnFailure::Block),
    ("park-message", OnFailure::ParkMessage),
    ("park-tail", OnFailure::ParkTail),
];

/// Reads every table of this name.
pub(super) fn read(top: &Reader<'_>, name: &str, dir: &Path) -> Vec<RelayConfig> {
    let tables = top.tables(name, RELAY);
    if tables.len() > RELAYS_MAX {
        let what = format!("there are more than {RELAYS_MAX} destinations; write another file");
        top.fault(top.place(name), what);
    }
    let (mut relays, mut names) = (Vec::new(), BTreeSet::new());
    for table in tables.iter().take(RELAYS_MAX) {
        if let Some(text) = table.text("name")
            && !names.insert(*text.get_ref())
        {
            let what = "another destination is called that, and each has progress of its own";
            table.fault(text.span(), format!("{what}; write another name instead"));
        }
        relays.extend(one(table, dir));
    }
    relays
}

fn one(table: &Reader<'_>, dir: &Path) -> Option<RelayConfig> {
    let place = where_to(table, dir);
    let destination = destination(table);
    let words = [("beginning", Start::Beginning), ("now", Start::Now)];
    let start = table.word("from", &words).map(Spanned::into_inner);
    let options = options(table);
    let source = |text: &str| {
        let advice = "write a URI reference, such as \"/shop/orders\", instead";
        CloudEvents::from_source(text).map_err(|_| format!("cannot be {text:?}; {advice}"))
    };
    let events = table.parsed("source", source).map(Spanned::into_inner);
    let place_of = place.as_ref();
    only(table, "exchange", place_of, "RabbitMQ", |to| matches!(to, Place::RabbitMq(_)));
    only(table, "prefix", place_of, "NATS and Kafka", |to| {
        matches!(to, Place::Nats(_) | Place::Kafka(_))
    });
    for name in ["secret_env", "secret_file"] {
        only(table, name, place_of, "webhooks", |to| matches!(to, Place::Webhook(_)));
    }
    let text = |name| table.text(name).map(|text| text.into_inner().to_owned());
    Some(RelayConfig {
        secrets: secrets_of(table, dir, place_of),
        exchange: text("exchange").unwrap_or_default(),
        prefix: text("prefix").unwrap_or_default(),
        destination: destination?,
        place: place?,
        start: start.unwrap_or(Start::Beginning),
        options,
        events: events.unwrap_or_default(),
    })
}

fn destination(table: &Reader<'_>) -> Option<Destination> {
    let topics = table.list("topics", |text| {
        Topics::parse([text]).map(|_| text.to_owned()).map_err(|refusal| {
            format!("cannot be {text:?}: {refusal}; write \"orders.paid\", \"orders.*\" or \"*\"")
        })
    });
    let topics = match topics {
        Some(topics) => {
            let refuse = |refusal| table.fault(topics.span(), format!("`topics`: {refusal}"));
            Topics::parse(topics.get_ref().clone()).map_err(refuse).ok()?
        }
        None => Topics::all(),
    };
    let Some(name) = table.text("name") else {
        if !table.has("name") {
            let what = "it has no `name`, under which its progress is kept";
            table.fault(table.span(), format!("{what}; write `name = \"billing\"` too"));
        }
        return None;
    };
    let named = Destination::new(*name.get_ref(), topics);
    let refuse = |_| table.fault(name.span(), "`name` must be 1 to 255 bytes; write another");
    named.map_err(refuse).ok()
}

/// What `to`, or the variable or file that holds it, says.
fn where_to(table: &Reader<'_>, dir: &Path) -> Option<Place> {
    let ways = ["to", "to_env", "to_file"];
    let given: Vec<_> = ways.into_iter().filter(|name| table.has(name)).collect();
    match given.as_slice() {
        [] => {
            let what = "it says nowhere to send events";
            table.fault(table.span(), format!("{what}; write `to = \"https://…\"` too"));
            None
        }
        [name] => {
            let text = table.text(name)?;
            let address = match *name {
                "to" => (*text.get_ref()).to_owned(),
                "to_env" => variable(table, name, &text)?,
                _ => files::named(table, name, &text, dir)?.trim().to_owned(),
            };
            let refuse = |refusal: InvalidPlace| {
                table.fault(text.span(), format!("`{name}` {refusal}"));
            };
            address.parse().map_err(refuse).ok()
        }
        [_, second, ..] => {
            let what = "says the same as another setting of this table; leave one of them out";
            table.fault(table.place(second), format!("`{second}` {what}"));
            None
        }
    }
}

fn options(table: &Reader<'_>) -> RelayOptions {
    let usual = RelayOptions::default();
    let count = |name| table.count(name, RETRY_ATTEMPTS_MAX).map(Spanned::into_inner);
    let schedule = count("attempts")
        .and_then(|attempts| Schedule::new(usual.schedule.backoff(), attempts).ok());
    let lease = table.duration("lease");
    if let Some(lease) = lease.as_ref().filter(|lease| *lease.get_ref() < LEASE_MIN) {
        let what = "`lease` is too short for a relay to renew it; write at least \"1s\" instead";
        table.fault(lease.span(), what);
    }
    let on_failure = table.word("on_failure", &ON_FAILURE).map(Spanned::into_inner);
    RelayOptions {
        on_failure: on_failure.unwrap_or(usual.on_failure),
        schedule: schedule.unwrap_or(usual.schedule),
        refusals_max: count("refusals").unwrap_or(usual.refusals_max),
        lease: lease.map_or(usual.lease, Spanned::into_inner),
        ..usual
    }
}

/// The secrets in a variable or file: separated by commas or white space, the newest first.
pub fn secrets_in(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c == ',' || c.is_whitespace());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// What events are signed with; a webhook's have to be.
fn secrets_of(table: &Reader<'_>, dir: &Path, place: Option<&Place>) -> Vec<String> {
    let secrets = secret(table, dir).map_or_else(Vec::new, |text| secrets_in(&text));
    let has_none = !table.has("secret_env") && !table.has("secret_file");
    if has_none && matches!(place, Some(Place::Webhook(_))) {
        let what = "a webhook is signed, and there is nothing to sign with";
        table.fault(table.place("to"), format!("{what}; write `secret_file = \"…\"` too"));
    }
    secrets
}

fn secret(table: &Reader<'_>, dir: &Path) -> Option<String> {
    if table.has("secret_env") && table.has("secret_file") {
        let what = "`secret_file` says the same as `secret_env`; leave one of them out";
        table.fault(table.place("secret_file"), what);
        return None;
    }
    if let Some(name) = table.text("secret_env") {
        return variable(table, "secret_env", &name);
    }
    let path = table.text("secret_file")?;
    files::named(table, "secret_file", &path, dir)
}

/// The value of the environment variable that a setting names.
fn variable(table: &Reader<'_>, setting: &str, name: &At<&str>) -> Option<String> {
    let value = env::var(name.get_ref()).ok().filter(|value| !value.is_empty());
    if value.is_none() {
        let named = name.get_ref();
        let what = format!("`{setting}` names {named}, which is not set; set it, or name another");
        table.fault(name.span(), what);
    }
    value
}

fn only(
    table: &Reader<'_>,
    name: &str,
    place: Option<&Place>,
    of: &str,
    takes: impl Fn(&Place) -> bool,
) {
    if table.has(name) && place.is_some_and(|place| !takes(place)) {
        let what = format!("`{name}` is for {of} alone; leave it out");
        table.fault(table.place(name), what);
    }
}
