//! Which requests are protected, and how: every `[[route]]`, and what no route names.

use std::{cell::OnceCell, path::Path};

use hapax_core::{Recovery, store::StoreScheme};
use hapax_tower::{
    Hosts, InFlight, InvalidRoute, KeptCredentials, KeyRule, Protection, ResultPolicy, Routes,
    StoreDown, Treatment,
};
use toml::Spanned;

use super::{
    Upstream, describe,
    fault::line_of,
    key_source,
    mode::{self, RouteMode},
    names::{DEFAULTS, ROUTE},
    pattern::Match,
    protection,
    reader::{At, TableReader},
    tenants::{self, Tenants},
};
use crate::client::UpstreamClient;

/// Most routes of one gateway: each request looks through them.
const ROUTES_MAX: usize = 1000;

/// What routes are read with.
pub(super) struct RouteReading<'a> {
    /// The file, to name lines of it.
    pub(super) text: &'a str,
    /// Where its paths start.
    pub(super) dir: &'a Path,
    pub(super) upstream: &'a Upstream,
    pub(super) tenants: &'a Tenants,
    pub(super) store: &'a str,
    /// What a flag says about every route.
    pub(super) mode: Option<RouteMode>,
    /// Whether clients are asked for certificates.
    pub(super) certificates: bool,
    /// Most bytes of request bodies in memory at one time.
    pub(super) buffered_bytes_max: usize,
    /// Made when the first route wants to ask the upstream.
    pub(super) client: OnceCell<Option<UpstreamClient>>,
}

/// The routes, and what is worth saying about them.
pub(super) struct RoutesRead {
    pub(super) routes: Option<Routes>,
    /// A line for each route, in order, and one for the rest.
    pub(super) summary: Vec<String>,
    pub(super) notes: Vec<String>,
    /// What is watched alone.
    pub(super) observed: Vec<String>,
    /// Whether a route takes its callers as the whole gateway does, and never asks about them again.
    pub(super) trusts_the_usual_tenant: bool,
}

impl RouteReading<'_> {
    /// Reads every route of the file.
    pub(super) fn read(&self, top: &TableReader<'_>) -> RoutesRead {
        let defaults = top.table("defaults", DEFAULTS);
        let mut read = RoutesRead {
            routes: None,
            summary: Vec::new(),
            notes: Vec::new(),
            observed: Vec::new(),
            trusts_the_usual_tenant: false,
        };
        let otherwise =
            protection::read(&defaults, KeyRule::Optional, self.hosts(), || self.client(top));
        let otherwise = match top.word("otherwise", &TREATMENTS).map(Spanned::into_inner) {
            None | Some(TreatmentWord::Protect) => {
                self.check_room(&defaults, &otherwise);
                self.treated(&defaults, otherwise)
            }
            Some(TreatmentWord::Pass) => Treatment::PassThrough,
            Some(TreatmentWord::Refuse) => Treatment::Refuse,
        };
        let otherwise_summary =
            read.tell(self.store, "other requests that change something", &otherwise, self.tenants);
        if top.is_sound() {
            let refuse = |error: InvalidRoute| top.fault(top.place("defaults"), error.to_string());
            let routes = Routes::new(otherwise).map_err(refuse).ok();
            read.routes = routes.map(|routes| routes.reading(self.upstream.paths));
        }
        let mut seen: Vec<At<Match>> = Vec::new();
        let tables = top.tables("route", ROUTE);
        if tables.len() > ROUTES_MAX {
            let what =
                format!("there are more than {ROUTES_MAX} routes; join some by `{{name}}` or `*`");
            top.fault(top.place("route"), what);
        }
        for route in tables.iter().take(ROUTES_MAX) {
            self.route(route, defaults, &mut seen, &mut read);
        }
        read.summary.push(otherwise_summary);
        read.note_observed();
        read
    }

    fn route(
        &self,
        route: &TableReader<'_>,
        defaults: TableReader<'_>,
        seen: &mut Vec<At<Match>>,
        read: &mut RoutesRead,
    ) {
        let matched = route.parsed("match", Match::parse);
        if !route.has("match") {
            let what = "this route matches nothing; write `match = \"POST /payments\"` too";
            route.fault(route.span(), what);
        }
        let label = route.text("match").map_or("", Spanned::into_inner);
        let unprotected = |treatment| {
            refuse_idle_settings(route);
            (treatment, self.tenants.clone())
        };
        let (treatment, tenants) =
            match route.word("treatment", &TREATMENTS).map(Spanned::into_inner) {
                None | Some(TreatmentWord::Protect) => self.protected(&route.or(defaults)),
                Some(TreatmentWord::Pass) => unprotected(Treatment::PassThrough),
                Some(TreatmentWord::Refuse) => unprotected(Treatment::Refuse),
            };
        let Some(matched) = matched else { return };
        self.refuse_twice(route, &matched, seen);
        let line = read.tell(self.store, label, &treatment, &tenants);
        read.summary.push(line);
        for method in matched.get_ref().methods.iter().filter(|_| route.is_sound()) {
            let Some(routes) = read.routes.take() else { break };
            let added = routes.route(method.clone(), &matched.get_ref().path, treatment.clone());
            let refuse = |error: InvalidRoute| route.fault(matched.span(), error.to_string());
            read.routes = added.map_err(refuse).ok();
        }
        seen.push(matched);
    }

    fn protected(&self, route: &TableReader<'_>) -> (Treatment, Tenants) {
        let tenants = tenants::read(route, self.dir, self.certificates);
        let mut protection =
            protection::read(route, KeyRule::Required, self.hosts(), || self.client(route));
        self.check_room(route, &protection);
        protection.tenancy = tenants.as_ref().map(|tenants| tenants.tenancy.clone());
        let tenants = tenants.unwrap_or_else(|| self.tenants.clone());
        (self.treated(route, protection), tenants)
    }

    fn treated(&self, route: &TableReader<'_>, protection: Protection) -> Treatment {
        match mode::read(route, self.mode) {
            RouteMode::Enforce => Treatment::Protect(protection),
            RouteMode::Observe => Treatment::Observe(protection),
        }
    }

    /// An upstream that sees the host of the client may do something else for each.
    fn hosts(&self) -> Hosts {
        if self.upstream.keep_host { Hosts::Apart } else { Hosts::Alike }
    }

    /// No body may be larger than the room for all of them.
    fn check_room(&self, route: &TableReader<'_>, protection: &Protection) {
        if protection.request_bytes_max > self.buffered_bytes_max {
            let what = "`request_max` is larger than `buffered` in `[limits]`, so it never fits";
            route.fault(route.place("request_max"), format!("{what}; write a larger `buffered`"));
        }
    }

    fn refuse_twice(&self, route: &TableReader<'_>, matched: &At<Match>, seen: &[At<Match>]) {
        let line = |earlier: &At<Match>| line_of(self.text, earlier.span().start);
        for earlier in seen {
            if let Some(method) = matched.get_ref().same_as(earlier.get_ref()) {
                let (line, path) = (line(earlier), &matched.get_ref().path);
                let what =
                    format!("{method} {path} is already treated by the route in line {line}");
                route.fault(matched.span(), format!("{what}; leave one of them out"));
                return;
            }
            if earlier.get_ref().covers(matched.get_ref()) {
                let line = line(earlier);
                let what =
                    format!("this route is never reached: the one in line {line} comes first");
                route.fault(matched.span(), format!("{what}; write this one above it instead"));
                return;
            }
        }
    }

    fn client(&self, table: &TableReader<'_>) -> Option<UpstreamClient> {
        let made = self.client.get_or_init(|| {
            let client = UpstreamClient::new(self.upstream);
            client.map_err(|error| table.fault(table.span(), error.to_string())).ok()
        });
        made.clone()
    }
}

/// What a server error of the upstream means on this route, where it could be a second effect.
fn server_errors(protection: &Protection) -> Option<&'static str> {
    match (protection.results, protection.policy.recovery()) {
        (ResultPolicy::Terminal | ResultPolicy::SuccessOnly, Recovery::Hold) => Some(
            "a 500 or 503 of the upstream frees the key, and a retry runs again: if it had its \
             effect first, that happens twice",
        ),
        (
            ResultPolicy::Terminal | ResultPolicy::SuccessOnly,
            Recovery::Resend | Recovery::Probe,
        )
        | (ResultPolicy::Stripe | ResultPolicy::AtMostOnce, _) => None,
    }
}

/// What can be done with a request.
#[derive(Debug, Clone, Copy)]
enum TreatmentWord {
    Protect,
    Pass,
    Refuse,
}

const TREATMENTS: [(&str, TreatmentWord); 3] = [
    ("protect", TreatmentWord::Protect),
    ("pass", TreatmentWord::Pass),
    ("refuse", TreatmentWord::Refuse),
];

/// A route that passes, or is refused, has nothing else to say.
fn refuse_idle_settings(route: &TableReader<'_>) {
    for name in ROUTE.iter().filter(|name| !["match", "treatment"].contains(name)) {
        if route.has(name) {
            let what = format!("`{name}` means nothing on an unprotected route; leave it out");
            route.fault(route.place(name), what);
        }
    }
}

impl RoutesRead {
    /// Says what is not protected although it is written down.
    fn note_observed(&mut self) {
        if !self.observed.is_empty() {
            let what = "nothing of that is refused or stored, and a retry runs again";
            let advice =
                "`hapax report` says what would have been done, `mode = \"enforce\"` does it";
            let observed = self.observed.join(", ");
            self.notes.push(format!("watched alone: {observed}; {what}; {advice}"));
        }
    }

    /// The line that sums this route up; what somebody should know about it becomes a note.
    fn tell(
        &mut self,
        store: &str,
        label: &str,
        treatment: &Treatment,
        tenants: &Tenants,
    ) -> String {
        let protection = match treatment {
            Treatment::Protect(protection) => protection,
            Treatment::Observe(protection) => {
                self.observed.push(label.to_owned());
                self.trusts_the_usual_tenant |= protection.tenancy.is_none();
                let enforced = describe::protection(protection, &tenants.described);
                return format!("{label}: mode observe, enforced it would be: {enforced}");
            }
            Treatment::PassThrough => return format!("{label}: passes, a key on it is ignored"),
            Treatment::Refuse => return format!("{label}: refused"),
        };
        self.trusts_the_usual_tenant |=
            protection.tenancy.is_none() && protection.revalidate.is_none();
        let accepts = protection.in_flight == InFlight::Accept;
        let resends = protection.policy.recovery() == Recovery::Resend;
        if StoreScheme::of(store) == Some(StoreScheme::Memory) && (accepts || resends) {
            let what = "accepted and abandoned requests are lost when the gateway stops";
            self.notes.push(format!("{label}: the store is memory, so {what}"));
        }
        if let Some(what) = server_errors(protection) {
            self.notes.push(format!("{label}: {what}"));
        }
        let derived = protection.derived_key.as_ref();
        if let Some(what) = derived.and_then(|it| key_source::note(it, protection.key)) {
            self.notes.push(format!("{label}: {what}"));
        }
        let later = accepts || protection.respond_async;
        if later && protection.credentials == KeptCredentials::LeaveOut {
            let what = "requests with credentials are refused where they would be run later";
            let advice = "write `keep_credentials = true` to accept them";
            self.notes.push(format!("{label}: {what}; {advice}"));
        }
        if protection.store_down == StoreDown::RunUnprotected {
            let what = "requests run WITHOUT PROTECTION while the store is away";
            self.notes.push(format!("{label}: {what}"));
        }
        let enforced = describe::protection(protection, &tenants.described);
        format!("{label}: mode enforce, {enforced}")
    }
}
