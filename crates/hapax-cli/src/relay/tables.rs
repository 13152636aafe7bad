//! Destinations as tables of a file: every `[[relay]]` of a gateway's, every `[[destination]]` of a
//! relay's own.

use std::{collections::BTreeSet, env, path::Path};

use hapax_core::{
    limits::RETRY_ATTEMPTS_MAX,
    outbox::{Destination, Start, Topics},
    retry::Schedule,
    store::StoreScheme,
};
use hapax_gateway::{
    Config,
    config::{
        Beside, ConfigError, ConfigSource, ForeignTable,
        reader::{At, TableReader},
    },
};
use hapax_messaging::{
    relay::{ON_FAILURE, RELAY_LEASE_MIN, RELAY_SETTINGS, RelayConfig, RelayOptions, secrets_in},
    sink::{CloudEvents, InvalidSinkAddress, SinkAddress},
};

use crate::telemetry::{ACCESS_LOG, TELEMETRY, TelemetrySettings};

/// Most destinations of one file: each has connections of its own.
const RELAYS_MAX: usize = 100;

/// What a gateway's file says: for the gateway, for relays that run beside it, and about who is told what they do.
pub(crate) struct GatewayFile {
    pub(crate) config: Config,
    pub(crate) relays: Vec<RelayConfig>,
    pub(crate) telemetry: TelemetrySettings,
}

/// Reads what a gateway is told, and what runs beside it.
pub(crate) fn load_gateway(source: &ConfigSource) -> Result<GatewayFile, ConfigError> {
    const NAME: &str = "relay";
    let (mut relays, mut telemetry) = (Vec::new(), TelemetrySettings::default());
    let relay = ForeignTable { name: NAME, settings: RELAY_SETTINGS, is_repeated: true };
    let config = Config::load_beside(
        source,
        Beside {
            tables: &[relay, TELEMETRY, ACCESS_LOG],
            read: &mut |top, file| {
                telemetry = TelemetrySettings::read(top, file.dir);
                relays = read(top, NAME, file.dir);
                if StoreScheme::of(file.store) == Some(StoreScheme::Memory) && !relays.is_empty() {
                    let what = "nothing can be emitted into a store in memory";
                    top.fault(top.place(NAME), format!("{what}; leave `[[relay]]` out"));
                }
                let lines = relays.iter().map(|relay| format!("relay {relay}"));
                lines.chain(telemetry.describe()).collect()
            },
        },
    )?;
    Ok(GatewayFile { config, relays, telemetry })
}

/// Reads every table of this name.
pub(super) fn read(top: &TableReader<'_>, name: &str, dir: &Path) -> Vec<RelayConfig> {
    let tables = top.tables(name, RELAY_SETTINGS);
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

fn one(table: &TableReader<'_>, dir: &Path) -> Option<RelayConfig> {
    let address = where_to(table, dir);
    let destination = destination(table);
    let words = [("beginning", Start::Beginning), ("now", Start::Now)];
    let start = table.word("from", &words).map(At::into_inner);
    let options = options(table);
    let source = |text: &str| {
        let advice = "write a URI reference, such as \"/shop/orders\", instead";
        CloudEvents::from_source(text).map_err(|_| format!("cannot be {text:?}; {advice}"))
    };
    let events = table.parsed("source", source).map(At::into_inner);
    let to = address.as_ref();
    only(table, "exchange", to, "RabbitMQ", SinkAddress::has_exchanges);
    only(table, "prefix", to, "NATS and Kafka", SinkAddress::has_prefixes);
    for name in ["secret_env", "secret_file"] {
        only(table, name, to, "webhooks", SinkAddress::is_signed);
    }
    let text = |name| table.text(name).map(|text| text.into_inner().to_owned());
    Some(RelayConfig {
        secrets: secrets_of(table, dir, to),
        exchange: text("exchange").unwrap_or_default(),
        prefix: text("prefix").unwrap_or_default(),
        destination: destination?,
        address: address?,
        start: start.unwrap_or(Start::Beginning),
        options,
        events: events.unwrap_or_default(),
    })
}

fn destination(table: &TableReader<'_>) -> Option<Destination> {
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
fn where_to(table: &TableReader<'_>, dir: &Path) -> Option<SinkAddress> {
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
                _ => table.file(name, &text, dir)?.trim().to_owned(),
            };
            let refuse = |refusal: InvalidSinkAddress| {
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

fn options(table: &TableReader<'_>) -> RelayOptions {
    let usual = RelayOptions::default();
    let count = |name| table.count(name, RETRY_ATTEMPTS_MAX).map(At::into_inner);
    let schedule = count("attempts")
        .and_then(|attempts| Schedule::new(usual.schedule.backoff(), attempts).ok());
    let lease = table.duration("lease");
    if let Some(lease) = lease.as_ref().filter(|lease| *lease.get_ref() < RELAY_LEASE_MIN) {
        let what = "`lease` is too short for a relay to renew it; write at least \"1s\" instead";
        table.fault(lease.span(), what);
    }
    let on_failure = table.word("on_failure", &ON_FAILURE).map(At::into_inner);
    RelayOptions {
        on_failure: on_failure.unwrap_or(usual.on_failure),
        encrypted_only: table.flag("encrypted_only").unwrap_or(usual.encrypted_only),
        schedule: schedule.unwrap_or(usual.schedule),
        refusals_max: count("refusals").unwrap_or(usual.refusals_max),
        lease: lease.map_or(usual.lease, At::into_inner),
        ..usual
    }
}

/// What events are signed with; a webhook's have to be.
fn secrets_of(table: &TableReader<'_>, dir: &Path, to: Option<&SinkAddress>) -> Vec<String> {
    let secrets = secret(table, dir).map_or_else(Vec::new, |text| secrets_in(&text));
    let has_none = !table.has("secret_env") && !table.has("secret_file");
    if has_none && to.is_some_and(SinkAddress::is_signed) {
        let what = "a webhook is signed, and there is nothing to sign with";
        table.fault(table.place("to"), format!("{what}; write `secret_file = \"…\"` too"));
    }
    secrets
}

fn secret(table: &TableReader<'_>, dir: &Path) -> Option<String> {
    if table.has("secret_env") && table.has("secret_file") {
        let what = "`secret_file` says the same as `secret_env`; leave one of them out";
        table.fault(table.place("secret_file"), what);
        return None;
    }
    if let Some(name) = table.text("secret_env") {
        return variable(table, "secret_env", &name);
    }
    let path = table.text("secret_file")?;
    table.file("secret_file", &path, dir)
}

/// The value of the environment variable that a setting names.
fn variable(table: &TableReader<'_>, setting: &str, name: &At<&str>) -> Option<String> {
    let value = env::var(name.get_ref()).ok().filter(|value| !value.is_empty());
    if value.is_none() {
        let named = name.get_ref();
        let what = format!("`{setting}` names {named}, which is not set; set it, or name another");
        table.fault(name.span(), what);
    }
    value
}

fn only(
    table: &TableReader<'_>,
    name: &str,
    to: Option<&SinkAddress>,
    of: &str,
    takes: impl Fn(&SinkAddress) -> bool,
) {
    if table.has(name) && to.is_some_and(|to| !takes(to)) {
        let what = format!("`{name}` is for {of} alone; leave it out");
        table.fault(table.place(name), what);
    }
}
