//! Where the keys are.

use hapax::{
    DynStore, OperationId,
    operator::{Change, Operator, Order},
    store::{Filter, Page},
};
use hapax_gateway::admin::documents::{
    ChangedDocument, ExplanationDocument, ForeseenDocument, ListingDocument, ShownDocument,
};

use super::{admin::Admin, error::KeysError};
use crate::{
    args::SourceArgs,
    store::{Access, OpenStore, StoreAddress},
    token::token_in,
};

/// Where the keys are, and who is asked about them.
pub(crate) enum KeysSource {
    /// The store itself. Whatever else uses it may run or not.
    Store(DynStore),
    /// A running gateway.
    Admin(Admin),
}

impl KeysSource {
    /// Opens what is there; nothing is created.
    pub(crate) async fn open(args: &SourceArgs, access: Access) -> Result<Self, KeysError> {
        if let Some(url) = &args.admin {
            return Ok(Self::Admin(Admin::new(url, token(args)?.as_deref())?));
        }
        let address: StoreAddress = args.store.parse()?;
        match &address {
            StoreAddress::Memory => Err(KeysError::Memory),
            StoreAddress::Sqlite(_) | StoreAddress::Postgres(_) => {
                Ok(Self::Store(OpenStore::open(&address, access).await?.into_dyn()))
            }
        }
    }

    pub(crate) async fn list(
        &self,
        filter: Filter,
        page: Page,
    ) -> Result<ListingDocument, KeysError> {
        match self {
            Self::Store(store) => {
                Ok(ListingDocument::of(&Operator::new(store.clone()).list(filter, page).await?))
            }
            Self::Admin(admin) => admin.list(&filter, page).await,
        }
    }

    /// `None` if nothing is known about it.
    pub(crate) async fn show(
        &self,
        id: OperationId,
        with_body: bool,
    ) -> Result<Option<ShownDocument>, KeysError> {
        match self {
            Self::Store(store) => {
                let shown = Operator::new(store.clone()).show(id).await?;
                Ok(shown.is_known().then(|| ShownDocument::of(&shown, with_body)))
            }
            Self::Admin(admin) => admin.show(id, with_body).await,
        }
    }

    pub(crate) async fn explain(&self, id: OperationId) -> Result<ExplanationDocument, KeysError> {
        match self {
            Self::Store(store) => {
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
            Self::Store(store) => {
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
            Self::Store(store) => {
                let changed = Operator::new(store.clone()).carry_out(order, change).await?;
                Ok(ChangedDocument::of(order.id, &changed))
            }
            Self::Admin(admin) => admin.change(order, &change).await,
        }
    }
}

/// The token of the admin API; what is in a file counts for more.
fn token(args: &SourceArgs) -> Result<Option<String>, KeysError> {
    let Some(path) = &args.token_file else { return Ok(args.token.clone()) };
    let token = token_in(path);
    token.map(Some).map_err(|source| KeysError::TokenFile { path: path.clone(), source })
}
