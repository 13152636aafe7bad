//! Everything at one glance.

use std::collections::{BTreeMap, HashMap};

use hapax_gateway::admin::documents::OperationDocument;
use serde::Serialize;

use super::{
    Context,
    keys::{AllKeys, ReadFrom},
    page,
    storm::StormView,
    supervisor::{GatewayStatus, Kill, KilledBy},
};
use crate::demo::traffic::now;

/// Most keys that are shown.
const KEYS_SHOWN_MAX: usize = 60;

#[derive(Debug, Serialize)]
pub(super) struct Overview {
    now: String,
    gateway: GatewayView,
    keys: KeysView,
    storm: Option<StormView>,
    /// Parts of the page, ready to be shown.
    cards: String,
    charges: String,
}

#[derive(Debug, Serialize)]
struct GatewayView {
    status: &'static str,
    pid: Option<u32>,
    since: Option<String>,
    why: Option<String>,
    address: String,
    kills: Vec<KillView>,
}

#[derive(Debug, Serialize)]
struct KillView {
    at: String,
    pid: u32,
    by: KilledBy,
    back_at: Option<String>,
    /// How many operations were running then, once that is known.
    left: Option<usize>,
    /// How many of them are in which state now.
    now: BTreeMap<String, usize>,
}

#[derive(Debug, Serialize)]
struct KeysView {
    read_from: ReadFrom,
    trouble: Option<String>,
    all: usize,
    states: BTreeMap<String, usize>,
    /// Requests that the demo's clients sent.
    requests: u64,
    charges: usize,
    doubled: usize,
    newest: Vec<KeyView>,
}

#[derive(Debug, Serialize)]
struct KeyView {
    id: String,
    key: String,
    state: String,
    fence: i64,
    created_at: String,
    changed_at: String,
    requests: u64,
    replays: u64,
    charges: usize,
}

/// What there is to see now.
pub(super) async fn look(context: &Context) -> Overview {
    let keys = context.keys.all(context.read_from()).await;
    let venues = [&context.direct, &context.behind];
    Overview {
        now: now().to_string(),
        gateway: gateway(context, &keys),
        keys: keys_view(context, &keys),
        storm: context.storm.look(&context.direct, &context.behind),
        cards: page::cards(&venues),
        charges: page::charges(&context.behind.ledger),
    }
}

impl Context {
    /// Whom to ask about keys: while the gateway is down, its admin API is as well.
    pub(super) fn read_from(&self) -> ReadFrom {
        match self.supervisor.status() {
            GatewayStatus::Up { .. } => ReadFrom::AdminApi,
            GatewayStatus::Down { .. } | GatewayStatus::Lost { .. } => ReadFrom::File,
        }
    }
}

fn gateway(context: &Context, keys: &AllKeys) -> GatewayView {
    let states = keys.operations.iter().map(|one| (one.id.as_str(), one.state.as_str()));
    let states: HashMap<_, _> = states.collect();
    let kills = context.supervisor.kills();
    let (status, pid, since, why) = match context.supervisor.status() {
        GatewayStatus::Up { pid, since } => ("up", Some(pid), Some(since.to_string()), None),
        GatewayStatus::Down { since } => ("down", None, Some(since.to_string()), None),
        GatewayStatus::Lost { why } => ("lost", None, None, Some(crate::sentence(&*why))),
    };
    GatewayView {
        status,
        pid,
        since,
        why,
        address: context.supervisor.address.to_string(),
        kills: kills.iter().map(|kill| kill_view(kill, &states)).collect(),
    }
}

fn kill_view(kill: &Kill, states: &HashMap<&str, &str>) -> KillView {
    let mut now = BTreeMap::new();
    for id in kill.left.iter().flatten() {
        let state = states.get(id.to_string().as_str()).copied().unwrap_or("forgotten");
        *now.entry(state.to_owned()).or_default() += 1;
    }
    KillView {
        at: kill.at.to_string(),
        pid: kill.pid,
        by: kill.by,
        back_at: kill.back_at.map(|at| at.to_string()),
        left: kill.left.as_ref().map(Vec::len),
        now,
    }
}

fn keys_view(context: &Context, keys: &AllKeys) -> KeysView {
    let (ledger, traffic) = (&context.behind.ledger, &context.behind.traffic);
    let charged = ledger.counts();
    let mut states = BTreeMap::new();
    for operation in &keys.operations {
        *states.entry(operation.state.clone()).or_default() += 1;
    }
    let view = |operation: &OperationDocument| {
        let (requests, replays) = traffic.counts(&operation.key);
        KeyView {
            id: operation.id.clone(),
            key: operation.key.clone(),
            state: operation.state.clone(),
            fence: operation.fence,
            created_at: operation.created_at.clone(),
            changed_at: operation.changed_at.clone(),
            requests,
            replays,
            charges: charged.get(&operation.key).copied().unwrap_or(0),
        }
    };
    KeysView {
        read_from: keys.read_from,
        trouble: keys.trouble.as_ref().map(|trouble| crate::sentence(trouble)),
        all: keys.operations.len(),
        states,
        requests: traffic.all_requests(),
        charges: charged.values().sum(),
        doubled: charged.values().filter(|times| **times > 1).count(),
        newest: keys.operations.iter().take(KEYS_SHOWN_MAX).map(view).collect(),
    }
}
