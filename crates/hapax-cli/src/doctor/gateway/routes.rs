//! How routes are protected.

use std::time::Duration;

use hapax::{
    Recovery,
    tower::{Protection, StoreDown},
};
use hapax_gateway::Config;

use super::Diagnosis;
use crate::{doctor::keys::against_clients, units::span};

/// A route, as far as it is judged.
#[derive(Debug, Clone)]
struct RouteFacts {
    label: String,
    has_tenant: bool,
    retention: Duration,
    timeout: Duration,
    recovery: Recovery,
    runs_unprotected: bool,
}

#[derive(Debug)]
struct RoutesFacts {
    routes: Vec<RouteFacts>,
    /// Where the tenant comes from, in words, if somebody chose.
    tenant: Option<String>,
    has_admin: bool,
    drain: Duration,
    client_retries_for: Option<Duration>,
}

const CHECKS: &[fn(&RoutesFacts) -> Diagnosis] = &[tenancy, retention, doubts, drain, store_down];

pub(super) fn examine(
    config: &Config,
    written: &toml::Table,
    client_retries_for: Option<Duration>,
) -> Vec<Diagnosis> {
    let routes = config.routes.protections();
    let facts = RoutesFacts {
        routes: routes.map(|protection| RouteFacts::of(protection)).collect(),
        tenant: written.contains_key("tenant").then(|| config.tenant.clone()),
        has_admin: config.admin.is_some(),
        drain: config.drain,
        client_retries_for,
    };
    CHECKS.iter().map(|check| check(&facts)).collect()
}

impl RouteFacts {
    fn of(protection: &Protection) -> Self {
        Self {
            label: protection.label.to_string(),
            has_tenant: protection.tenancy.is_some(),
            retention: protection.policy.retention().window,
            timeout: protection.timeout,
            recovery: protection.policy.recovery(),
            runs_unprotected: protection.store_down == StoreDown::RunUnprotected,
        }
    }
}

fn tenancy(facts: &RoutesFacts) -> Diagnosis {
    const NAME: &str = "tenant";
    if let Some(tenant) = &facts.tenant {
        return Diagnosis::new(NAME, tenant.as_str());
    }
    let open: Vec<_> = facts.routes.iter().filter(|route| !route.has_tenant).collect();
    if open.is_empty() {
        return Diagnosis::new(NAME, "chosen for every route");
    }
    Diagnosis::new(NAME, format!("nobody chose it for {}", names(&open))).warning(
        "a caller is its Authorization header: one that renews its token between two attempts is somebody else, and its retry runs again",
        "write [tenant] with from = \"jwt\", \"header\", \"single\" or, if that is meant, \"credential\"",
    )
}

fn retention(facts: &RoutesFacts) -> Diagnosis {
    const NAME: &str = "retention of routes";
    let Some(shortest) = facts.routes.iter().min_by_key(|route| route.retention) else {
        return Diagnosis::new(NAME, "no route is protected");
    };
    let words = format!("at least {}, on {}", span(shortest.retention), shortest.label);
    against_clients(Diagnosis::new(NAME, words), shortest.retention, facts.client_retries_for)
}

fn doubts(facts: &RoutesFacts) -> Diagnosis {
    const NAME: &str = "recovery";
    let held = facts.routes.iter().filter(|route| route.recovery == Recovery::Hold);
    let held: Vec<_> = held.collect();
    if held.is_empty() {
        return Diagnosis::new(NAME, "every route finds out by itself what became of a request");
    }
    let found = Diagnosis::new(NAME, format!("a person has to decide on {}", names(&held)));
    if facts.has_admin {
        return found;
    }
    found.warning(
        "keys in doubt wait for somebody who is never told: there are no metrics",
        "write admin = \"127.0.0.1:8081\" and load docs/alerts.yml into Prometheus, or choose recovery = \"probe\" or \"resend\"",
    )
}

fn drain(facts: &RoutesFacts) -> Diagnosis {
    const NAME: &str = "drain";
    let longest = facts.routes.iter().max_by_key(|route| route.timeout);
    let Some(longest) = longest.filter(|route| route.timeout > facts.drain) else {
        return Diagnosis::new(NAME, format!("{}, longer than every timeout", span(facts.drain)));
    };
    let words = format!(
        "{}, shorter than the timeout of {} ({})",
        span(facts.drain),
        longest.label,
        span(longest.timeout)
    );
    Diagnosis::new(NAME, words).warning(
        "a restart cuts off requests that are at work, and may leave their keys in doubt",
        format!("write drain = \"{}s\"", longest.timeout.as_secs() + 5),
    )
}

fn store_down(facts: &RoutesFacts) -> Diagnosis {
    const NAME: &str = "store_down";
    let open: Vec<_> = facts.routes.iter().filter(|route| route.runs_unprotected).collect();
    if open.is_empty() {
        return Diagnosis::new(NAME, "nothing runs while the store is away");
    }
    Diagnosis::new(NAME, format!("runs unprotected on {}", names(&open))).warning(
        "while the store is away a retry runs again",
        "leave store_down out, or keep it for what may happen twice",
    )
}

/// At most three of them by name.
fn names(routes: &[&RouteFacts]) -> String {
    let named =
        routes.iter().take(3).map(|route| route.label.as_str()).collect::<Vec<_>>().join(", ");
    match routes.len() {
        ..=3 => named,
        more => format!("{named} and {} more", more - 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    fn facts() -> RoutesFacts {
        let route = |label: &str| RouteFacts {
            label: label.to_owned(),
            has_tenant: false,
            retention: Duration::from_secs(86_400),
            timeout: Duration::from_secs(25),
            recovery: Recovery::Hold,
            runs_unprotected: false,
        };
        RoutesFacts {
            routes: ["a", "b", "c", "d", "e"].map(route).to_vec(),
            tenant: Some("one tenant for everybody".to_owned()),
            has_admin: true,
            drain: Duration::from_secs(30),
            client_retries_for: None,
        }
    }

    #[test]
    fn routes_that_nobody_thought_about_are_told() {
        assert!(CHECKS.iter().all(|check| check(&facts()).concern.is_none()));
        let unchosen = tenancy(&RoutesFacts { tenant: None, ..facts() });
        assert_eq!(unchosen.found, "nobody chose it for a, b, c and 2 more");
        let unheard = doubts(&RoutesFacts { has_admin: false, ..facts() });
        assert_eq!(unheard.severity(), Some(Severity::Warning));
    }

    #[test]
    fn times_that_contradict_each_other_are_told() {
        let cut = drain(&RoutesFacts { drain: Duration::from_secs(10), ..facts() });
        assert_eq!(cut.concern.unwrap().advice, "write drain = \"30s\"");
        let tries = Some(Duration::from_secs(3 * 86_400));
        let short = retention(&RoutesFacts { client_retries_for: tries, ..facts() });
        assert_eq!(short.severity(), Some(Severity::Danger));
    }
}
