//! Where the keys are.

use hapax::{
    DynStore, OperationId, Timestamp,
    operator::{Change, Operator, Order, Resolution},
    store::{Filter, KeyStorage as _, Page},
    wall_clock,
};
use hapax_gateway::admin::documents::{
    ChangedDocument, ExplanationDocument, ForeseenDocument, ListingDocument, ShownDocument,
};

use super::{admin::Admin, error::KeysError};
use crate::{
    args::SourceArgs,
    encryption::from_files,
    store::{Access, OpenStore, StoreAddress},
    token::token_in,
};

/// Where the keys are, and who is asked about them.
pub(crate) enum KeysSource {
    /// The store itself. Whatever else uses it may run or not.
    Store(DynStore),
    /// A store that is encrypted, without the key: what is clear in it can be seen and changed.
    Locked(DynStore),
    /// A running gateway.
    Admin(Admin),
}

impl KeysSource {
    /// Opens what is there; nothing is created.
    pub(crate) async fn open(args: &SourceArgs, access: Access) -> Result<Self, KeysError> {
        if let Some(url) = &args.admin {
            return Ok(Self::Admin(Admin::new(url, token(args)?.as_deref())?));
        }
        let address: StoreAddress = args.file.or(&args.store).parse()?;
        match &address {
            StoreAddress::Memory => Err(KeysError::Memory),
            StoreAddress::Sqlite(_) | StoreAddress::Postgres(_) => {
                let store = OpenStore::open(&address, access).await?;
                Ok(match from_files(&args.master)? {
                    Some(encryption) => Self::Store(store.encrypted(encryption).await?),
                    None if store.master_keys().await?.is_empty() => Self::Store(store.into_dyn()),
                    None => Self::Locked(store.into_dyn()),
                })
            }
        }
    }

    pub(crate) async fn list(
        &self,
        filter: Filter,
        page: Page,
    ) -> Result<ListingDocument, KeysError> {
        match self {
            Self::Store(store) | Self::Locked(store) => {
                Ok(ListingDocument::of(&Operator::new(store.clone()).list(filter, page).await?))
            }
            Self::Admin(admin) => admin.list(&filter, page).await,
        }
    }

    /// The time by which the age of keys is told: the store's, or this machine's where a gateway is asked.
    pub(super) async fn now(&self) -> Result<Timestamp, KeysError> {
        match self {
            Self::Store(store) | Self::Locked(store) => Ok(store.clock().await?.now),
            Self::Admin(_) => Ok(wall_clock().into()),
        }
    }

    /// `None` if nothing is known about it. What its steps came to cannot be read without the key.
    pub(crate) async fn show(
        &self,
        id: OperationId,
        with_body: bool,
    ) -> Result<Option<ShownDocument>, KeysError> {
        match self {
            Self::Store(store) | Self::Locked(store) => {
                let operator = Operator::new(store.clone());
                let shown = operator.show(id).await?;
                if !shown.is_known() {
                    return Ok(None);
                }
                let document = ShownDocument::of(&shown, with_body);
                Ok(Some(match self {
                    Self::Store(_) => document.with_steps(&operator.steps(id).await?, with_body),
                    Self::Locked(_) | Self::Admin(_) => document,
                }))
            }
            Self::Admin(admin) => admin.show(id, with_body).await,
        }
    }

    pub(crate) async fn explain(&self, id: OperationId) -> Result<ExplanationDocument, KeysError> {
        match self {
            Self::Store(store) | Self::Locked(store) => {
                Ok(ExplanationDocument::of(&Operator::new(store.clone()).show(id).await?))
            }
            Self::Admin(admin) => admin.explain(id).await,
        }
    }

    /// What the change would do. Refuses what would be refused now, and changes nothing.
    pub(super) async fn foresee(
        &self,
        order: &Order,
        change: &Change,
    ) -> Result<ForeseenDocument, KeysError> {
        match self {
            // What would be stored in the clear beside what is encrypted is not stored at all.
            Self::Locked(_) if stores_an_answer(change) => Err(KeysError::NoMasterKey),
            Self::Store(store) | Self::Locked(store) => {
                Operator::new(store.clone()).examine(order, change).await?;
                Ok(ForeseenDocument::of(order.id, change))
            }
            Self::Admin(admin) => admin.foresee(order, change).await,
        }
    }

    pub(super) async fn change(
        &self,
        order: &Order,
        change: Change,
    ) -> Result<ChangedDocument, KeysError> {
        match self {
            Self::Store(store) | Self::Locked(store) => {
                let changed = Operator::new(store.clone()).carry_out(order, change).await?;
                Ok(ChangedDocument::of(order.id, &changed))
            }
            Self::Admin(admin) => admin.change(order, &change).await,
        }
    }
}

fn stores_an_answer(change: &Change) -> bool {
    match change {
        Change::Resolve(Resolution::Completed { .. } | Resolution::Failed { .. }) => true,
        Change::Resolve(Resolution::Released) | Change::Release => false,
    }
}

/// The token of the admin API; what is in a file counts for more.
fn token(args: &SourceArgs) -> Result<Option<String>, KeysError> {
    let Some(path) = &args.token_file else { return Ok(args.token.clone()) };
    let token = token_in(path);
    token.map(Some).map_err(|source| KeysError::TokenFile { path: path.clone(), source })
}
