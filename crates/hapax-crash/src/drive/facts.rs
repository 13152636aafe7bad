//! Gathers what is left behind: the journal, the upstream's books, and the store itself.

use std::{collections::BTreeMap, path::Path};

use hapax_core::{
    Faults, OperationId, Scope, Store, StoreError,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Page},
};

use crate::{
    check::{Facts, Kept},
    error::CrashError,
    journal::Journal,
    open::Address,
    upstream::Upstream,
    victim::hand,
    work::Work,
};

/// Everything known about the first `keys` operations of a scope.
pub(crate) async fn gather(
    address: &Address,
    dir: &Path,
    scope: &Scope,
    keys: usize,
) -> Result<Facts, CrashError> {
    let works: Vec<_> = (0..keys).map(Work::new).collect();
    let journal = Journal::read(&dir.join(Journal::NAME))?;
    let upstream = Upstream::at(dir.join(Upstream::NAME))?;
    let effects = works.iter().map(|work| Ok((*work, upstream.effects(*work)?)));
    let effects = effects.collect::<Result<_, CrashError>>()?;
    let kept = match address {
        Address::Sqlite(path) => read(&Address::sqlite(path, Faults::default())?, scope).await?,
        Address::Postgres(url) => {
            read(&Address::postgres(url, Faults::default()).await?, scope).await?
        }
    };
    Ok(Facts { works, journal, effects, kept })
}

/// What is stored in a scope, after everything else was read too.
async fn read(store: &impl Store, scope: &Scope) -> Result<BTreeMap<Work, Kept>, CrashError> {
    kept(store, &Work::fleeting_scope().map_err(CrashError::name)?).await?;
    Ok(kept(store, scope).await?)
}

/// What is stored in a scope.
async fn kept(store: &impl Store, scope: &Scope) -> Result<BTreeMap<Work, Kept>, StoreError> {
    let mut kept = BTreeMap::new();
    let mut after = None;
    loop {
        let filter = Filter { scope: Some(scope.clone()), ..Filter::default() };
        let page = store.list(filter, Page { after, limit: PAGE_RECORDS_MAX }).await?;
        let ids: Vec<OperationId> = page.iter().map(|listed| listed.id).collect();
        let Some(last) = ids.last().copied() else { return Ok(kept) };
        after = Some(last);
        for loaded in store.load(ids).await {
            let Some(record) = loaded?.record else { continue };
            if let Ok(work) = record.operation.key().as_str().parse() {
                let effect = record.outcome().and_then(hand::effect);
                kept.insert(work, Kept { state: record.tag(), effect });
            }
        }
    }
}
