//! How many keys there are, by their states.

use std::{collections::BTreeMap, ops::ControlFlow};

use hapax::{StateTag, store::Filter};
use hapax_gateway::admin::documents::ListedDocument;
use serde::Serialize;

use super::{
    error::KeysError,
    find::{Cutoff, every_page},
    print::KeysPrinter,
    source::KeysSource,
};
use crate::{
    args::{CountArgs, CountBy},
    store::Access,
};

/// How many keys were found.
#[derive(Debug, Default, Serialize)]
pub(super) struct KeysCount {
    pub(super) total: u64,
    /// By state; what cannot be read is `unreadable`.
    pub(super) states: BTreeMap<String, u64>,
    /// By tenant or scope, the largest first; nothing if that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) groups: Option<Vec<GroupCount>>,
    /// How many tenants or scopes are not among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) groups_left_out: Option<usize>,
}

/// How many keys one tenant or scope has.
#[derive(Debug, Default, Serialize)]
pub(super) struct GroupCount {
    pub(super) name: String,
    pub(super) total: u64,
    pub(super) states: BTreeMap<String, u64>,
}

const UNREADABLE: &str = "unreadable";

/// The states in the order of a life, then what cannot be read.
pub(super) fn state_words() -> impl Iterator<Item = &'static str> {
    StateTag::ALL.into_iter().map(StateTag::as_str).chain([UNREADABLE])
}

/// Counts all that are meant, page by page.
pub(super) async fn count(args: CountArgs) -> Result<(), KeysError> {
    let source = KeysSource::open(&args.source, Access::Look).await?;
    let printer = KeysPrinter::new(args.source.json);
    let cutoff = Cutoff::of(&source, &args.which).await?;
    let filter =
        Filter { tenant: args.tenant.clone(), scope: args.scope.clone(), state: args.which.state };
    let (mut count, mut groups) = (KeysCount::default(), BTreeMap::new());
    every_page(&source, filter, None, args.search_max, |page| {
        for listed in page.iter().filter(|listed| cutoff.lets_through(listed)) {
            count.add(listed);
            if let Some(name) = args.by.map(|by| group_of(listed, by)) {
                let group: &mut GroupCount = groups.entry(name.to_owned()).or_default();
                group.total += 1;
                *group.states.entry(state_of(listed).to_owned()).or_default() += 1;
            }
        }
        ControlFlow::Continue(())
    })
    .await?;
    if args.by.is_some() {
        count.group(groups, usize::try_from(args.limit).unwrap_or(usize::MAX));
    }
    printer.counted(&count, args.by)
}

impl KeysCount {
    fn add(&mut self, listed: &ListedDocument) {
        self.total += 1;
        *self.states.entry(state_of(listed).to_owned()).or_default() += 1;
    }

    fn group(&mut self, groups: BTreeMap<String, GroupCount>, limit: usize) {
        let mut groups: Vec<_> =
            groups.into_iter().map(|(name, group)| GroupCount { name, ..group }).collect();
        groups.sort_by(|one, other| other.total.cmp(&one.total).then(one.name.cmp(&other.name)));
        self.groups_left_out = Some(groups.len().saturating_sub(limit));
        groups.truncate(limit);
        self.groups = Some(groups);
    }
}

fn state_of(listed: &ListedDocument) -> &str {
    match listed {
        ListedDocument::Readable(operation) => &operation.state,
        ListedDocument::Unreadable { .. } => UNREADABLE,
    }
}

fn group_of(listed: &ListedDocument, by: CountBy) -> &str {
    match (listed, by) {
        (ListedDocument::Readable(operation), CountBy::Tenant) => &operation.tenant,
        (ListedDocument::Readable(operation), CountBy::Scope) => &operation.scope,
        (ListedDocument::Unreadable { .. }, _) => UNREADABLE,
    }
}
