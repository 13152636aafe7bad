//! How a route is protected, from what `[[route]]` and `[defaults]` say about it.

use std::{num::NonZeroU32, time::Duration};

use hapax_core::{
    Policy, Recovery, RetainFrom, Retention, Scope,
    limits::{LEASE_MAX, LEASE_MIN, OUTCOME_BODY_BYTES_MAX, REQUEST_BYTES_MAX, RETENTION_MIN},
};
use hapax_tower::{
    BodyForm, ComparedHeaders, Dialect, Hosts, InFlight, KeptBody, KeptCredentials, KeyForm,
    KeyRule, KeySpelling, Prober, Protection, RateLimit, ResultPolicy, Revalidator, Scoping,
    StoreDown,
};
use http::{HeaderName, StatusCode};
use toml::Spanned;

use super::{
    key_source,
    names::FINGERPRINT,
    probe::{AnswerReading, Template},
    reader::TableReader,
    revalidate::{self, Revalidation},
    tenants::header_name,
    units, worth,
};
use crate::client::UpstreamClient;

/// How much longer than its timeout a lease is, where nobody says.
const LEASE_MARGIN: Duration = Duration::from_secs(5);
/// How long a duplicate waits, where nobody says.
const WAIT: Duration = Duration::from_secs(10);
/// Largest request body that can be stored, in bytes: a stored request also holds its head.
const REQUEST_BODY_BYTES_MAX: usize = REQUEST_BYTES_MAX - (1 << 20);

/// What `route` says. A key is needed as `unsaid` says where it does not say so itself; `client`
/// is asked for when the upstream is to be asked something.
pub(super) fn read(
    route: &TableReader<'_>,
    unsaid: KeyRule,
    hosts: Hosts,
    client: impl Fn() -> Option<UpstreamClient>,
) -> Protection {
    let usual = Protection::default();
    let duration = |name| route.duration(name).map(Spanned::into_inner);
    let headers = |name| route.list(name, header_name).map(Spanned::into_inner);
    let store_down =
        [("refuse", StoreDown::Refuse), ("run-unprotected", StoreDown::RunUnprotected)];
    let store_down = route.word("store_down", &store_down).map(Spanned::into_inner);
    let key = key_source::read(route, unsaid);
    let timeout = duration("timeout").unwrap_or(usual.timeout);
    let response_bytes_max =
        cap(route, "response_max", OUTCOME_BODY_BYTES_MAX).unwrap_or(usual.response_bytes_max);
    let policy = policy(route, timeout, usual.policy);
    let status = probe_status(route, policy.recovery());
    let reading = AnswerReading { bytes_max: response_bytes_max, within: timeout, status, hosts };
    let fingerprint = route.table("fingerprint", FINGERPRINT);
    let dialect = dialect(route).unwrap_or(usual.dialect);
    check_key_form(route, &dialect, key.form);
    let asking = Asking { key_header: dialect.key_header().clone(), hosts, within: timeout };
    let protection = Protection {
        label: usual.label,
        policy,
        results: results(route, dialect.results()),
        key: key.rule,
        key_form: key.form,
        derived_key: key.derived,
        dialect,
        key_spelling: key_spelling(route).unwrap_or(usual.key_spelling),
        scope: scope(route).unwrap_or(usual.scope),
        hosts,
        in_flight: in_flight(route).unwrap_or(usual.in_flight),
        respond_async: route.flag("respond_async").unwrap_or(usual.respond_async),
        wait_max: duration("wait_max").unwrap_or(usual.wait_max),
        timeout,
        grpc_timeout: route.flag("grpc_timeout").unwrap_or(usual.grpc_timeout),
        receive_within: duration("receive_within").unwrap_or(usual.receive_within),
        body: body(&fingerprint),
        compared_headers: fingerprint
            .list("headers", header_name)
            .map_or(usual.compared_headers, |names| ComparedHeaders::Named(names.into_inner())),
        unstored_headers: headers("unstored_headers").unwrap_or(usual.unstored_headers),
        stored_headers: headers("stored_headers").unwrap_or(usual.stored_headers),
        request_bytes_max: cap(route, "request_max", REQUEST_BODY_BYTES_MAX)
            .unwrap_or(usual.request_bytes_max),
        response_bytes_max,
        kept_body: match route.flag("keep_body") {
            Some(false) => KeptBody::Never,
            Some(true) | None => usual.kept_body,
        },
        store_down: store_down.unwrap_or(usual.store_down),
        worth: worth::read(route),
        probe: probe(route, policy.recovery(), reading, &client),
        revalidate: revalidate(route, asking, &client),
        recover_for: recover_for(route, policy.recovery()).unwrap_or(usual.recover_for),
        limit: limit(route),
        secret_headers: headers("secret_headers").unwrap_or(usual.secret_headers),
        credentials: match route.flag("keep_credentials") {
            Some(true) => KeptCredentials::Keep,
            Some(false) | None => usual.credentials,
        },
        ..usual
    };
    key_source::check(route, &protection);
    protection
}

fn key_spelling(route: &TableReader<'_>) -> Option<KeySpelling> {
    let words = [("quoted", KeySpelling::Quoted), ("bare", KeySpelling::Bare)];
    route.word("forward_key", &words).map(Spanned::into_inner)
}

fn dialect(route: &TableReader<'_>) -> Option<Dialect> {
    let header = route.parsed("header", header_name);
    let words = [
        ("idempotency-key", Standard::Ietf),
        ("repeatability", Standard::Oasis),
        ("stripe", Standard::Stripe),
        ("paypal", Standard::Paypal),
        ("adyen", Standard::Adyen),
    ];
    let dialect = route.word("dialect", &words);
    let dialect_counts = route.counts_beside("dialect", "header");
    if dialect_counts && route.counts_beside("header", "dialect") {
        let what = "`header` and `dialect` both say where the key is; leave one of them out";
        route.fault(route.place("dialect"), what);
    }
    if dialect_counts {
        return match dialect?.into_inner() {
            Standard::Ietf => None,
            Standard::Oasis => Some(Dialect::Repeatability),
            Standard::Stripe => Some(Dialect::Stripe),
            Standard::Paypal => Some(Dialect::Paypal),
            Standard::Adyen => Some(Dialect::Adyen),
        };
    }
    header.map(|header| Dialect::Header(header.into_inner()))
}

/// Whose words a client uses.
#[derive(Debug, Clone, Copy)]
enum Standard {
    Ietf,
    Oasis,
    Stripe,
    Paypal,
    Adyen,
}

/// Refuses to ask clients of a vendor for quotes, which they do not write.
fn check_key_form(route: &TableReader<'_>, dialect: &Dialect, form: KeyForm) {
    let name = match dialect {
        Dialect::Header(_) | Dialect::Repeatability => return,
        Dialect::Stripe | Dialect::Paypal | Dialect::Adyen => dialect.as_str(),
    };
    if form == KeyForm::Quoted {
        let what =
            format!("`key` cannot be \"strict\" in the dialect {name:?}, where keys are any text");
        route.fault(route.place("key"), format!("{what}; write `key = \"required\"` instead"));
    }
}

fn scope(route: &TableReader<'_>) -> Option<Scoping> {
    let scope = route.parsed("scope", |text| match text {
        "path" => Ok(Scoping::MethodAndPath),
        name => Scope::parse(name).map(Scoping::Named).map_err(|_| {
            let advice = "write \"path\", or a name in visible ASCII, instead";
            format!("cannot be {name:?}; {advice}")
        }),
    });
    scope.map(Spanned::into_inner)
}

fn in_flight(route: &TableReader<'_>) -> Option<InFlight> {
    let wait = route.duration("wait").map_or(WAIT, Spanned::into_inner);
    let words = [
        ("reject", InFlight::Reject),
        ("wait", InFlight::Wait(wait)),
        ("accept", InFlight::Accept),
    ];
    let in_flight = route.word("in_flight", &words).map(Spanned::into_inner);
    let waits = matches!(in_flight, Some(InFlight::Wait(_)));
    if !waits && route.counts_beside("wait", "in_flight") {
        let what = "`wait` means nothing here; write `in_flight = \"wait\"` too, or leave it out";
        route.fault(route.place("wait"), what);
    }
    in_flight
}

fn body(fingerprint: &TableReader<'_>) -> BodyForm {
    let ignored = fingerprint.list("ignore", |text| worth::pointer(text, "/sent_at"));
    let words = [
        ("auto", Form::Auto),
        ("raw", Form::Raw),
        ("json", Form::Json),
        ("multipart", Form::Multipart),
    ];
    let form = fingerprint.word("body", &words).map(Spanned::into_inner);
    let ignored = ignored.map(Spanned::into_inner).unwrap_or_default();
    let reads_json = matches!(form, None | Some(Form::Auto | Form::Json));
    if !reads_json && fingerprint.counts_beside("ignore", "body") {
        let what =
            "`ignore` means nothing here; write `body = \"auto\"` or \"json\", or leave it out";
        fingerprint.fault(fingerprint.place("ignore"), what);
    }
    match form.unwrap_or(Form::Auto) {
        Form::Auto => BodyForm::Auto { ignored },
        Form::Raw => BodyForm::Raw,
        Form::Json => BodyForm::Json { ignored },
        Form::Multipart => BodyForm::Multipart,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Auto,
    Raw,
    Json,
    Multipart,
}

fn cap(route: &TableReader<'_>, name: &str, max: usize) -> Option<usize> {
    let max = u64::try_from(max).unwrap_or(u64::MAX);
    route.size(name, 1, max).map(Spanned::into_inner)
}

/// What results mean.
fn results(route: &TableReader<'_>, usual: ResultPolicy) -> ResultPolicy {
    let results = ResultPolicy::ALL.map(|results| (results.as_str(), results));
    route.word("results", &results).map_or(usual, Spanned::into_inner)
}

/// Leases and retention; where they contradict each other, the usual ones.
fn policy(route: &TableReader<'_>, timeout: Duration, usual: Policy) -> Policy {
    let recovery = [Recovery::Resend, Recovery::Probe, Recovery::Hold];
    let recovery = recovery.map(|recovery| (recovery.as_str(), recovery));
    let from = [("creation", RetainFrom::Creation), ("completion", RetainFrom::Completion)];
    let recovery =
        route.word("recovery", &recovery).map_or_else(|| usual.recovery(), Spanned::into_inner);
    let from = route.word("retain_from", &from);
    let tombstone = route.duration_or_zero("tombstone");
    let window = route.duration("retention");
    let kept = usual.retention();
    let retention = Retention {
        window: window.map_or(kept.window, Spanned::into_inner),
        from: from.map_or(kept.from, Spanned::into_inner),
        tombstone: tombstone.map_or(kept.tombstone, Spanned::into_inner),
    };
    let lease = lease(route, timeout, usual.lease());
    check_retention(route, retention.window, lease);
    let works_for = works_for(route, recovery).unwrap_or(timeout);
    Policy::new(lease, retention, recovery).unwrap_or(usual).working_for(works_for)
}

/// How long the upstream may be at work on what nobody waits for any more.
fn works_for(route: &TableReader<'_>, recovery: Recovery) -> Option<Duration> {
    if recovery != Recovery::Probe && route.counts_beside("upstream_works_for", "recovery") {
        let what = "`upstream_works_for` means nothing here: nobody asks whether it happened";
        let advice = "write `recovery = \"probe\"` too, or leave it out";
        route.fault(route.place("upstream_works_for"), format!("{what}; {advice}"));
    }
    route.duration("upstream_works_for").map(Spanned::into_inner)
}

/// The status of what the probe says happened, where it is not the probe's own.
fn probe_status(route: &TableReader<'_>, recovery: Recovery) -> Option<StatusCode> {
    let status = route.count("probe_status", 299)?;
    let (place, status) = (status.span(), status.into_inner());
    if recovery != Recovery::Probe && route.counts_beside("probe_status", "recovery") {
        let what = "`probe_status` means nothing here; write `recovery = \"probe\"` too";
        route.fault(place.clone(), format!("{what}, or leave it out"));
    }
    let known = u16::try_from(status).ok().filter(|status| (200..300).contains(status));
    if known.is_none() {
        let what = format!("`probe_status` cannot be {status}; write a status from 200 to 299");
        route.fault(place, format!("{what} instead"));
    }
    known.and_then(|status| StatusCode::from_u16(status).ok())
}

/// The lease, longer than the timeout.
fn lease(route: &TableReader<'_>, timeout: Duration, usual: Duration) -> Duration {
    let enough = timeout + LEASE_MARGIN;
    let Some(lease) = route.duration("lease") else {
        if timeout >= LEASE_MAX {
            let max = units::spelled(LEASE_MAX);
            let what =
                format!("`timeout` is not shorter than the longest lease; write less than {max}");
            route.fault(route.place("timeout"), what);
        }
        return usual.max(enough).min(LEASE_MAX);
    };
    let (place, lease) = (lease.span(), lease.into_inner());
    if !(LEASE_MIN..=LEASE_MAX).contains(&lease) {
        let [lease, min, max] = [lease, LEASE_MIN, LEASE_MAX].map(units::spelled);
        let what =
            format!("`lease` cannot be {lease}; write a duration from {min} to {max} instead");
        route.fault(place, what);
        return usual.max(enough).min(LEASE_MAX);
    }
    if lease <= timeout {
        let [lease, timeout, enough] = [lease, timeout, enough].map(units::spelled);
        let what = format!("a `lease` of {lease} is not longer than the `timeout` of {timeout}");
        let advice = format!("write `lease = \"{enough}\"`, or a shorter `timeout`, instead");
        route.fault(place, format!("{what}; {advice}"));
    }
    lease
}

fn check_retention(route: &TableReader<'_>, window: Duration, lease: Duration) {
    let (least, than) = match lease.max(RETENTION_MIN) {
        least if least == lease => (least, "the `lease`"),
        least => (least, "the shortest there is"),
    };
    if window < least {
        let place = route.place(if route.has("retention") { "retention" } else { "lease" });
        let [window, least] = [window, least].map(units::spelled);
        let what = format!("a `retention` of {window} is shorter than {than}, {least}");
        route.fault(place, format!("{what}; write `retention = \"{least}\"` or more instead"));
    }
}

fn probe(
    route: &TableReader<'_>,
    recovery: Recovery,
    reading: AnswerReading,
    client: impl FnOnce() -> Option<UpstreamClient>,
) -> Option<Prober> {
    let template = route.parsed("probe", Template::parse);
    match recovery {
        Recovery::Probe => {
            if !route.has("probe") {
                let what = "`recovery` is \"probe\", and nobody says what to ask";
                let advice = "write `probe = \"/payments/by-key/{key}\"` too";
                route.fault(route.place("recovery"), format!("{what}; {advice}"));
            }
            Some(template?.into_inner().prober(client()?, reading))
        }
        Recovery::Resend | Recovery::Hold => {
            if route.counts_beside("probe", "recovery") {
                let what = "`probe` is never asked";
                let advice = "write `recovery = \"probe\"` too, or leave it out";
                route.fault(route.place("probe"), format!("{what}; {advice}"));
            }
            None
        }
    }
}

/// How a caller is asked about.
struct Asking {
    key_header: HeaderName,
    hosts: Hosts,
    within: Duration,
}

fn revalidate(
    route: &TableReader<'_>,
    asking: Asking,
    client: impl FnOnce() -> Option<UpstreamClient>,
) -> Option<Revalidator> {
    let target = route.parsed("revalidate", revalidate::target)?.into_inner();
    let Asking { key_header, hosts, within } = asking;
    let revalidation = Revalidation { target, hosts, key_header, within };
    Some(revalidation.revalidator(client()?))
}

fn recover_for(route: &TableReader<'_>, recovery: Recovery) -> Option<Duration> {
    if recovery == Recovery::Hold && route.counts_beside("recover_for", "recovery") {
        let what = "`recover_for` means nothing here";
        let advice = "write `recovery = \"resend\"` or \"probe\" too, or leave it out";
        route.fault(route.place("recover_for"), format!("{what}; {advice}"));
    }
    route.duration_or_zero("recover_for").map(Spanned::into_inner)
}

fn limit(route: &TableReader<'_>) -> Option<RateLimit> {
    let rate = route.parsed("rate_limit", units::rate);
    let burst = route.count("burst", units::RATE_MAX).map(Spanned::into_inner);
    if !route.has("rate_limit") && route.has("burst") {
        let what = "`burst` means nothing here; write `rate_limit = \"50/s\"` too, or leave it out";
        route.fault(route.place("burst"), what);
    }
    let rate = rate?.into_inner();
    Some(RateLimit::per_tenant(rate, burst.and_then(NonZeroU32::new).unwrap_or(rate)))
}
