//! What to do next about routes that are watched: which line to write, and whom to talk to first.

use hapax_gateway::admin::documents::{
    ObservationsDocument, ObservedClientDocument, ObservedRouteDocument,
};

/// Most clients that are named in one sentence.
const CLIENTS_NAMED_MAX: usize = 5;

/// A sentence for each thing to do, in the order to do it.
pub(super) fn advice(seen: &ObservationsDocument) -> Vec<String> {
    let mut all = Vec::new();
    let observed: Vec<_> = seen.routes.iter().filter(|route| route.observed).collect();
    if observed.is_empty() {
        let how = "write `mode = \"observe\"` in a route, or start with `hapax serve --observe`";
        return vec![format!("No route of this gateway is watched alone: {how}.")];
    }
    for route in &observed {
        about_route(seen, route, &mut all);
    }
    if observed.iter().all(|route| route.amounts.is_empty() && route.without_amount == 0) {
        let how = "write `amount = \"/amount\"` and `currency = \"EUR\"` in it";
        all.push(format!("To see what repeated requests of a route were worth, {how}."));
    }
    let flags = "`--observe` counts for more than the file, so leave it out then";
    all.push(format!("To enforce every route at once, start with `--enforce`; {flags}."));
    all
}

fn about_route(seen: &ObservationsDocument, route: &ObservedRouteDocument, all: &mut Vec<String>) {
    let name = &route.route;
    if route.requests == 0 {
        all.push(format!("{name}: nothing came yet. Let it watch on."));
        return;
    }
    let strangers = of(route, "tenant_unknown") + of(route, "tenant_unknown_again");
    if strangers > 0 {
        let how = "say in `tenant` how callers are known, or write `tenant = \"single\"` where there is one";
        all.push(format!(
            "{name}: for {} nobody knows whose they are; {how}.",
            requests(strangers)
        ));
    }
    let without = of(route, "key_missing") + of(route, "key_missing_again");
    if without > 0 {
        let again = of(route, "key_missing_again");
        let how = "have their clients send an Idempotency-Key, one for each operation, or have keys made of what they \
                   send anyway, such as `key = { from = \"body\", pointer = \"/order_id\" }`";
        let until = "`key = \"optional\"` lets those without one pass";
        let who = without_key(seen);
        all.push(format!(
            "{name}: {} without a key, {again} of which look like retries; {how}{who}; {until}.",
            came(without)
        ));
    }
    let mismatches = of(route, "mismatch");
    if mismatches > 0 {
        let how = "its client must make a new key for a new request; what changes with each attempt can be \
                   left out by `fingerprint.ignore`";
        all.push(format!(
            "{name}: {} under the key of another request, and would be refused with 422; {how}.",
            came(mismatches)
        ));
    }
    if !route.refusals.is_empty() {
        let codes = route.refusals.iter().map(|(code, count)| format!("{code} ({count})"));
        let codes = codes.collect::<Vec<_>>().join(", ");
        all.push(format!("{name}: some would be refused: {codes}; docs/errors explains each."));
    }
    let place = match name.as_str() {
        "otherwise" => "`[defaults]`, which holds for every route that does not say otherwise",
        _ => "its `[[route]]`",
    };
    all.push(format!("{name}: to enforce it, write `mode = \"enforce\"` in {place}."));
}

/// Who sends requests without a key, those that repeat them first.
fn without_key(seen: &ObservationsDocument) -> String {
    let count = |client: &ObservedClientDocument, word| client.what.get(word).copied().unwrap_or(0);
    let without = |client: &&ObservedClientDocument| {
        count(client, "key_missing") + count(client, "key_missing_again") > 0
    };
    let mut clients: Vec<_> = seen.clients.iter().filter(without).collect();
    clients.sort_by_key(|client| std::cmp::Reverse(count(client, "key_missing_again")));
    if clients.is_empty() {
        return String::new();
    }
    let named = clients.iter().take(CLIENTS_NAMED_MAX).map(|client| client.client.as_str());
    let named = named.collect::<Vec<_>>().join(", ");
    match clients.len().saturating_sub(CLIENTS_NAMED_MAX) {
        0 => format!(" ({named})"),
        more => format!(" ({named} and {more} more)"),
    }
}

pub(super) fn of(route: &ObservedRouteDocument, word: &str) -> u64 {
    route.what.get(word).copied().unwrap_or(0)
}

/// `1 request`, `7 requests`.
pub(super) fn requests(count: u64) -> String {
    match count {
        1 => "1 request".to_owned(),
        count => format!("{count} requests"),
    }
}

/// `1 request came`, `7 requests came`.
fn came(count: u64) -> String {
    format!("{} came", requests(count))
}
