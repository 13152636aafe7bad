//! The gateway's records, read as an operator reads them: by its admin API, or while it is down from
//! its file.

use std::{sync::Arc, time::Duration};

use hapax::{
    OperationId, StateTag,
    store::{Filter, Page},
};
use hapax_gateway::admin::documents::{
    ExplanationDocument, ListedDocument, OperationDocument, ShownDocument,
};
use serde::Serialize;
use tokio::{
    sync::Mutex,
    time::{Instant, error::Elapsed, timeout},
};

use crate::{
    args::{MasterKeyArgs, SourceArgs, StoreFileArgs},
    demo::gateway::DemoGateway,
    keys::{KeysError, KeysSource},
    store::Access,
};

/// How long the records may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How old a listing may be: several windows may ask at the same time.
const LISTING_FRESH_FOR: Duration = Duration::from_millis(300);
const PAGE_RECORDS: usize = 1_000;
/// Most pages of a listing: more than all orders there may be.
const PAGES_MAX: usize = 10;

/// Reads the records of one gateway.
#[derive(Debug, Clone)]
pub(super) struct KeyReader {
    admin: String,
    token: String,
    store: String,
    last: Arc<Mutex<Option<LastListing>>>,
}

/// A listing, and when it was made.
type LastListing = (Instant, Arc<AllKeys>);

/// All operations at one moment, the newest first.
#[derive(Debug)]
pub(super) struct AllKeys {
    pub(super) operations: Vec<OperationDocument>,
    pub(super) read_from: ReadFrom,
    /// Why these are not the present ones.
    pub(super) trouble: Option<ReadError>,
}

/// Why the records were not read: nothing is changed by it, and the next look may succeed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Source(#[from] KeysError),
    #[error("nobody answered in time")]
    Late(#[from] Elapsed),
}

/// Who was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReadFrom {
    AdminApi,
    File,
}

impl KeyReader {
    pub(super) fn new(gateway: &DemoGateway) -> Self {
        Self {
            admin: format!("http://{}", gateway.admin),
            token: gateway.token.clone(),
            store: gateway.store.clone(),
            last: Arc::default(),
        }
    }

    /// All operations; the last known ones, if they cannot be read now.
    pub(super) async fn all(&self, from: ReadFrom) -> Arc<AllKeys> {
        let mut last = self.last.lock().await;
        if let Some((at, known)) = last.as_ref()
            && at.elapsed() < LISTING_FRESH_FOR
            && known.read_from == from
        {
            return Arc::clone(known);
        }
        let listed = self.list(from, Filter::default()).await;
        let keys = match listed {
            Ok(mut operations) => {
                operations.sort_by(|a, b| b.created_at.cmp(&a.created_at));
                AllKeys { operations, read_from: from, trouble: None }
            }
            Err(trouble) => {
                let known = last.take();
                let operations = known.map(|(_, known)| known.operations.clone());
                let operations = operations.unwrap_or_default();
                AllKeys { operations, read_from: from, trouble: Some(trouble) }
            }
        };
        let keys = Arc::new(keys);
        *last = Some((Instant::now(), Arc::clone(&keys)));
        keys
    }

    /// Everything known about one operation, and what its next request meets.
    pub(super) async fn one(
        &self,
        from: ReadFrom,
        id: OperationId,
    ) -> Result<Option<(ShownDocument, ExplanationDocument)>, ReadError> {
        let reading = async {
            let source = self.open(from).await?;
            let shown = source.show(id, false).await?;
            let explanation = source.explain(id).await?;
            Ok(shown.map(|shown| (shown, explanation)))
        };
        timeout(PATIENCE, reading).await?
    }

    /// What the gateway left running, read from its file.
    pub(super) async fn running_in_file(&self) -> Result<Vec<OperationId>, ReadError> {
        let filter = Filter { state: Some(StateTag::Running), ..Filter::default() };
        let running = self.list(ReadFrom::File, filter).await?;
        Ok(running.iter().filter_map(|operation| operation.id.parse().ok()).collect())
    }

    async fn list(
        &self,
        from: ReadFrom,
        filter: Filter,
    ) -> Result<Vec<OperationDocument>, ReadError> {
        let reading = async {
            let source = self.open(from).await?;
            let (mut operations, mut after) = (Vec::new(), None);
            for _ in 0..PAGES_MAX {
                let page = Page { after, limit: PAGE_RECORDS };
                let listing = source.list(filter.clone(), page).await?;
                for listed in listing.operations {
                    match listed {
                        ListedDocument::Readable(operation) => operations.push(*operation),
                        // `hapax keys` is for those; the demo writes none.
                        ListedDocument::Unreadable { .. } => {}
                    }
                }
                after = listing.next.and_then(|id| id.parse().ok());
                if after.is_none() {
                    break;
                }
            }
            Ok(operations)
        };
        timeout(PATIENCE, reading).await?
    }

    async fn open(&self, from: ReadFrom) -> Result<KeysSource, KeysError> {
        let admin = match from {
            ReadFrom::AdminApi => Some(self.admin.clone()),
            ReadFrom::File => None,
        };
        let (store, token) = (self.store.clone(), Some(self.token.clone()));
        let master = MasterKeyArgs { master_key_file: None, previous_master_key_file: None };
        let args = SourceArgs {
            store,
            file: StoreFileArgs::default(),
            admin,
            token,
            token_file: None,
            master,
            json: false,
        };
        KeysSource::open(&args, Access::Look).await
    }
}
