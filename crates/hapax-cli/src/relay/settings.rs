//! What the arguments say, in the form the tables of a file have.

use std::{env, fs, net::SocketAddr};

use hapax::Encryption;
use hapax_core::{
    outbox::{Destination, Topics},
    retry::Schedule,
};
use hapax_messaging::{
    relay::{RELAY_LEASE_MIN, RelayConfig, RelayOptions, secrets_in},
    sink::SinkAddress,
};

use super::{error::RelayRunError, file::RelayFile};
use crate::{args::RelayArgs, encryption::from_files, telemetry::TelemetrySettings};

/// Where the outbox is, and where its events go.
pub(super) struct RelaySettings {
    pub(super) store: String,
    pub(super) destinations: Vec<RelayConfig>,
    /// Where health and metrics are; nowhere if `None`.
    pub(super) admin: Option<SocketAddr>,
    /// What encrypted events are opened with; nothing if `None`.
    pub(super) encryption: Option<Encryption>,
    pub(super) telemetry: TelemetrySettings,
}

impl RelaySettings {
    pub(super) fn read(args: &RelayArgs) -> Result<Self, RelayRunError> {
        let file = RelayFile::load(args.config.as_deref())?;
        let destinations = match (&args.config, &args.to) {
            (Some(_), _) => file.destinations,
            (None, Some(to)) => vec![destination(args, to)?],
            // Clap has made sure that there is one of them.
            (None, None) => Vec::new(),
        };
        let store = args.file.address().or_else(|| args.store.clone()).or(file.store);
        Ok(Self {
            store: store.unwrap_or_else(|| "sqlite:hapax.db".to_owned()),
            destinations,
            admin: args.admin.or(file.admin),
            encryption: from_files(&args.keys)?.or(file.encryption),
            telemetry: file.telemetry,
        })
    }
}

fn destination(args: &RelayArgs, to: &SinkAddress) -> Result<RelayConfig, RelayRunError> {
    check(args, to)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => usual_name(args, to)?,
    };
    let topics = match args.topics.as_slice() {
        [] => Topics::all(),
        topics => Topics::parse(topics.iter().cloned())?,
    };
    let usual = RelayOptions::default();
    let schedule = args.attempts.and_then(|attempts| {
        // Clap has made sure that it is in bounds.
        Schedule::new(usual.schedule.backoff(), attempts).ok()
    });
    Ok(RelayConfig {
        destination: Destination::new(name, topics)?,
        address: to.clone(),
        start: args.from.start(),
        options: RelayOptions {
            on_failure: args.on_failure.policy(),
            encrypted_only: args.encrypted_only,
            schedule: schedule.unwrap_or(usual.schedule),
            refusals_max: args.refusals.unwrap_or(usual.refusals_max),
            lease: args.lease,
            ..usual
        },
        events: args.source.clone().unwrap_or_default(),
        secrets: secrets(args)?,
        exchange: args.exchange.clone(),
        prefix: args.prefix.clone(),
    })
}

/// All that tells one destination from another. Two of one name would share their events, and the
/// topics of the later one would hold for both.
fn usual_name(args: &RelayArgs, to: &SinkAddress) -> Result<String, RelayRunError> {
    if to.is_shown_in_part() {
        return Err(RelayRunError::NoName);
    }
    let address = to.to_string();
    let told = [address.as_str(), args.exchange.as_str(), args.prefix.as_str()];
    let told = told.into_iter().chain(args.topics.iter().map(String::as_str));
    let words: Vec<_> = told.filter(|word| !word.is_empty()).collect();
    Ok(words.join(" "))
}

/// Refuses what means nothing there.
fn check(args: &RelayArgs, to: &SinkAddress) -> Result<(), RelayRunError> {
    let has_secret = args.secret_env.is_some() || args.secret_file.is_some();
    if args.lease < RELAY_LEASE_MIN {
        return Err(RelayRunError::LeaseTooShort);
    }
    if has_secret && !to.is_signed() {
        return Err(RelayRunError::Needless { flag: "--secret-env or --secret-file" });
    }
    if to.is_signed() && !has_secret {
        return Err(RelayRunError::NoSecret);
    }
    if !args.exchange.is_empty() && !to.has_exchanges() {
        return Err(RelayRunError::Needless { flag: "--exchange" });
    }
    if !args.prefix.is_empty() && !to.has_prefixes() {
        return Err(RelayRunError::Needless { flag: "--prefix" });
    }
    Ok(())
}

fn secrets(args: &RelayArgs) -> Result<Vec<String>, RelayRunError> {
    if let Some(name) = &args.secret_env {
        let value = env::var(name).map_err(|_| RelayRunError::NoVariable { name: name.clone() })?;
        return Ok(secrets_in(&value));
    }
    let Some(path) = &args.secret_file else { return Ok(Vec::new()) };
    let text = fs::read_to_string(path)
        .map_err(|source| RelayRunError::SecretFile { path: path.clone(), source })?;
    Ok(secrets_in(&text))
}
