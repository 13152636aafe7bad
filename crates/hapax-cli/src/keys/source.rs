//! Where the keys are.

use hapax::{
    OperationId,
    operator::{Change, Operator, Order},
    store::{Filter, Page},
};
use hapax_gateway::admin::documents::{Changed, Explanation, Foreseen, Listing, Shown};

use super::{admin::Admin, error::KeysError};
use crate::{
    args::SourceArgs,
    store::{self, Access, Address, AnyStore},
    token::token_in,
};

/// Where the keys are, and who is asked about them.
pub(super) enum Source {
    /// The store itself. Whatever else uses it may run or not.
    Store(AnyStore),
    /// A running gateway.
    Admin(Admin),
}

impl Source {
    /// Opens what is there; nothing is created.
    pub(super) async fn open(args: &SourceArgs, access: Access) -> Result<Self, KeysError> {
        if let Some(url) = &args.admin {
            return Ok(Self::Admin(Admin::new(url, token(args)?.as_deref())?));
        }
        let address: Address = args.store.parse()?;
        match &address {
            Address::Memory => Err(KeysError::Memory),
            Address::Sqlite(_) | Address::Postgres(_) => {
                Ok(Self::Store(store::open(&address, access).await?))
            }
        }
    }

    pub(super) async fn list(&self, filter: Filter, page: Page) -> Result<Listing, KeysError> {
        match self {
            Self::Store(store) => Ok(Listing::of(&Operator::new(store).list(filter, page).await?)),
            Self::Admin(admin) => admin.list(&filter, page).await,
        }
    }

    /// `None` if nothing is known about it.
    pub(super) async fn show(
        &self,
        id: OperationId,
        with_body: bool,
    ) -> Result<Option<Shown>, KeysError> {
        match self {
            Self::Store(store) => {
                let shown = Operator::new(store).show(id).await?;
                Ok(shown.is_known().then(|| Shown::of(&shown, with_body)))
            }
            Self::Admin(admin) => admin.show(id, with_body).await,
        }
    }

    pub(super) async fn explain(&self, id: OperationId) -> Result<Explanation, KeysError> {
        match self {
            Self::Store(store) => Ok(Explanation::of(&Operator::new(store).show(id).await?)),
            Self::Admin(admin) => admin.explain(id).await,
        }
    }

    /// What the change would do. Refuses what would be refused now, and changes nothing.
    pub(super) async fn foresee(
        &self,
        order: &Order,
        change: &Change,
    ) -> Result<Foreseen, KeysError> {
        match self {
            Self::Store(store) => {
                Operator::new(store).examine(order, change).await?;
                Ok(Foreseen::of(order.id, change))
            }
            Self::Admin(admin) => admin.foresee(order, change).await,
        }
    }

    pub(super) async fn change(&self, order: &Order, change: Change) -> Result<Changed, KeysError> {
        match self {
            Self::Store(store) => {
                let changed = Operator::new(store).carry_out(order, change).await?;
                Ok(Changed::of(order.id, &changed))
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
