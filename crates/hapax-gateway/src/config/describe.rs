//! What is in force, in words, so that it can be read before it is trusted.

use hapax_core::{Policy, Recovery};
use hapax_tower::{
    BodyForm, ComparedHeaders, Cors, Dialect, Hosts, InFlight, KeptBody, KeyForm, KeyRule,
    KeySpelling, PathReading, Protection, Readers, Scoping, StoreDown, WorthCurrency, WorthRule,
};

use super::{
    AdminOidc, Config, encryption, key_source, store, units::spelled, units::spelled_size,
};

/// What this configuration means: a line for each route and for each other thing that matters,
/// without anything secret.
pub fn describe(config: &Config) -> String {
    let Config { listen, upstream, limits, .. } = config;
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let clients = config.tls.as_ref().and_then(|tls| tls.clients.as_ref());
    let asked = match clients.map(|clients| clients.required) {
        Some(true) => ", for clients with a certificate alone",
        Some(false) => ", and asks clients for a certificate",
        None => "",
    };
    let mut lines = vec![format!("listens at {scheme}://{listen}{asked}")];
    lines.push(admin(config));
    lines.extend(config.admin_oidc.as_ref().map(AdminOidc::described));
    lines.push(match upstream.paths {
        PathReading::Lenient => format!("protects {}", upstream.url),
        PathReading::Literal => format!("protects {}, which reads paths literally", upstream.url),
    });
    lines.extend(
        upstream.identity.as_ref().map(|identity| {
            format!("shows it the certificate in {}", identity.certificate.display())
        }),
    );
    lines.push(format!("keeps records in {}", store::shown(&config.store)));
    lines.extend(config.encryption.as_ref().map(encryption::described));
    lines.push(format!("tenant: {}", config.tenant));
    lines.push(format!(
        "limits: {} connections, {} of bodies and {} of answers in memory, {} for one connection",
        limits.connections_max,
        spelled_size(limits.buffered_bytes_max),
        spelled_size(limits.answers_bytes_max),
        spelled_size(limits.share_bytes_max)
    ));
    lines.extend(config.cors.as_ref().map(readers));
    if !config.drain_delay.is_zero() {
        let delay = spelled(config.drain_delay);
        lines.push(format!("told to stop, it is not ready and serves on for {delay}"));
    }
    lines.extend(config.summary.iter().cloned());
    lines.extend(config.beside.iter().cloned());
    lines.extend(config.notes.iter().map(|note| format!("note: {note}")));
    lines.join("\n") + "\n"
}

/// Where operators look and what they have to show, in one line.
fn admin(config: &Config) -> String {
    let Some(address) = config.admin else { return "no admin listener".to_owned() };
    let tokens = match (&config.admin_token, &config.admin_read_token) {
        (Some(_), None) => "with a token",
        (Some(_), Some(_)) => "with a token, and another one to look alone",
        (None, Some(_)) => "with a token to look alone",
        (None, None) if config.admin_oidc.is_some() => "without a token",
        (None, None) => "health and metrics alone",
    };
    let hosts = match config.admin_hosts.as_slice() {
        [] => String::new(),
        hosts => format!("; browsers may come by {} too", hosts.join(", ")),
    };
    format!("admin at http://{address}, {tokens}{hosts}")
}

/// Which pages of other origins may ask, in one line.
fn readers(cors: &Cors) -> String {
    match &cors.readers {
        Readers::Anybody => "pages of any origin may read answers".to_owned(),
        Readers::Origins { listed, credentials } => {
            let listed = listed.iter().map(|origin| origin.to_str().unwrap_or_default());
            let listed = listed.collect::<Vec<_>>().join(", ");
            let cookies = if *credentials { ", with cookies" } else { "" };
            format!("pages of {listed} may read answers{cookies}")
        }
    }
}

/// How a route is protected, in one line.
pub(super) fn protection(protection: &Protection, tenant: &str) -> String {
    let policy = &protection.policy;
    let retention = policy.retention();
    let key = match (protection.key, protection.key_form) {
        (KeyRule::Required, KeyForm::QuotedOrBare | KeyForm::AsItIs) => "required",
        (KeyRule::Optional, _) => "optional",
        (KeyRule::Required, KeyForm::Quoted) => "strict",
    };
    let header = protection.dialect.key_header().as_str();
    let body = match &protection.body {
        BodyForm::Auto { .. } => "auto",
        BodyForm::Raw => "raw",
        BodyForm::Json { .. } => "json",
        BodyForm::Multipart => "multipart",
    };
    let in_flight = match protection.in_flight {
        InFlight::Reject => "reject".to_owned(),
        InFlight::Wait(wait) => format!("wait {}", spelled(wait)),
        InFlight::Accept => "accept".to_owned(),
    };
    let in_flight = if protection.respond_async && protection.in_flight != InFlight::Accept {
        format!("{in_flight}, or 202 for who prefers it")
    } else {
        in_flight
    };
    let scope = match &protection.scope {
        Scoping::MethodAndPath | Scoping::FromFn(_) => "path",
        Scoping::Named(scope) => scope.as_str(),
    };
    let key = match &protection.derived_key {
        Some(derived) => key_source::described(derived, protection.key, header),
        None => format!("key {key} in {header}"),
    };
    let mut words = vec![
        key,
        format!("tenant {tenant}"),
        format!("scope {scope}"),
        format!("body {body}"),
        format!("kept {}", spelled(retention.window)),
        format!("timeout {}", spelled(protection.timeout)),
        format!("lease {}", spelled(policy.lease())),
        format!("in flight {in_flight}"),
        format!("results {}", protection.results.as_str()),
        recovery(policy),
        format!("request {}", spelled_size(protection.request_bytes_max)),
        format!("response {}", spelled_size(protection.response_bytes_max)),
    ];
    words.extend(unusual(protection));
    words.join(", ")
}

/// What few routes say.
fn unusual(protection: &Protection) -> Vec<String> {
    let (mut words, retention) = (Vec::new(), protection.policy.retention());
    match &protection.dialect {
        Dialect::Header(_) | Dialect::Repeatability => {}
        Dialect::Stripe | Dialect::Paypal | Dialect::Adyen => {
            words.push(format!("refuses as {} does", protection.dialect.as_str()));
        }
    }
    if protection.compared_headers != ComparedHeaders::Usual {
        let names = protection.compared_headers.names().join(" ");
        words.push(format!("compares the headers [{names}] alone"));
    }
    match protection.key_spelling {
        KeySpelling::OfTheHeader => {}
        KeySpelling::Quoted => words.push("key forwarded quoted".to_owned()),
        KeySpelling::Bare => words.push("key forwarded bare".to_owned()),
    }
    if protection.hosts == Hosts::Apart {
        words.push("each host has keys of its own".to_owned());
    }
    if !retention.tombstone.is_zero() {
        words.push(format!("tombstone {}", spelled(retention.tombstone)));
    }
    if protection.grpc_timeout {
        words.push("reads grpc-timeout".to_owned());
    }
    if protection.kept_body == KeptBody::Never {
        words.push("bodies of answers not kept".to_owned());
    }
    if protection.revalidate.is_some() {
        words.push("asks anew who may hear a replay".to_owned());
    }
    if protection.limit.is_some() {
        words.push("rate limited".to_owned());
    }
    words.extend(protection.worth.as_ref().map(worth));
    if protection.store_down == StoreDown::RunUnprotected {
        words.push("UNPROTECTED while the store is away".to_owned());
    }
    words
}

/// Where requests say what they are worth.
fn worth(worth: &WorthRule) -> String {
    let currency = match &worth.currency {
        None => String::new(),
        Some(WorthCurrency::At(pointer)) => format!(" in {pointer}"),
        Some(WorthCurrency::Always(currency)) => format!(" in {}", currency.as_str()),
    };
    match worth.decimals {
        0 => format!("amount {}{currency}", worth.amount),
        decimals => format!("amount {} with {decimals} decimals{currency}", worth.amount),
    }
}

/// What is done about an answer that never came, and how long the upstream may be at work on it.
fn recovery(policy: &Policy) -> String {
    let recovery = policy.recovery();
    match recovery {
        Recovery::Probe => {
            let works_for = spelled(policy.works_for());
            format!("recovery {} (at work for up to {works_for})", recovery.as_str())
        }
        Recovery::Resend | Recovery::Hold => format!("recovery {}", recovery.as_str()),
    }
}
