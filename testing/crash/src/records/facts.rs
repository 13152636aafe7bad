//! Gathers what is left behind: the journal, the upstream's books, and the store itself.

use std::{collections::BTreeMap, path::Path};

use hapax_core::{
    DynStore, Faults, OperationId, Scope, StoreError,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Page},
};

use super::{
    check::{KeptRecord, RecordFacts},
    hand,
    journal::CallerJournal,
    upstream::FileUpstream,
    work::Work,
};
use crate::{error::CrashError, open::DurableAddress};

/// Everything known about the first `keys` operations of a scope.
pub(crate) async fn gather(
    address: &DurableAddress,
    dir: &Path,
    scope: &Scope,
    keys: usize,
) -> Result<RecordFacts, CrashError> {
    let works: Vec<_> = (0..keys).map(Work::new).collect();
    let journal = CallerJournal::read(&dir.join(CallerJournal::NAME))?;
    let upstream = FileUpstream::at(dir.join(FileUpstream::NAME))?;
    let effects = works.iter().map(|work| Ok((*work, upstream.effects(*work)?)));
    let effects = effects.collect::<Result<_, CrashError>>()?;
    let store = address.open(Faults::default()).await?;
    // Nobody checks what is in there, but it must be readable.
    kept(&store, &Work::fleeting_scope().map_err(CrashError::name)?).await?;
    let kept = kept(&store, scope).await?;
    Ok(RecordFacts { works, journal, effects, kept })
}

/// What is stored in a scope.
async fn kept(store: &DynStore, scope: &Scope) -> Result<BTreeMap<Work, KeptRecord>, StoreError> {
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
                kept.insert(work, KeptRecord { state: record.tag(), effect });
            }
        }
    }
}
