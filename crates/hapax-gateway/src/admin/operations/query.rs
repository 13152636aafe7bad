//! What a request names: an operation, a filter, a page.

use hapax_core::{
    InvalidName, Key, OperationId, Scope, StateTag, Tenant,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Page},
};
use serde::Deserialize;

use super::oldest::PlaceInTime;
use crate::admin::problem::AdminProblem;

/// How many operations a page has if nobody says otherwise.
const PAGE_RECORDS_DEFAULT: usize = 100;

/// The query of a listing. What is not there does not matter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    state: Option<String>,
    tenant: Option<String>,
    scope: Option<String>,
    key: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
    /// In which order: `id`, or `oldest` of what is in doubt.
    order: Option<String>,
}

/// In which order operations are asked for.
#[derive(Debug)]
pub(super) enum PageOrder {
    /// By id, from the page on.
    Id,
    /// Those first that have been in their state the longest, after this place.
    Oldest(Option<PlaceInTime>),
}

/// Which operations are asked for.
#[derive(Debug)]
pub(super) struct ListWish {
    pub(super) filter: Filter,
    pub(super) key: Option<Key>,
    pub(super) page: Page,
    pub(super) order: PageOrder,
}

/// The query of one operation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowQuery {
    /// Whether to show the body of the stored response.
    #[serde(default)]
    pub(super) body: bool,
}

impl ListQuery {
    pub(super) fn parse(&self) -> Result<ListWish, AdminProblem> {
        let invalid =
            |what: &str, refusal: InvalidName| AdminProblem::invalid(format!("{what}: {refusal}"));
        let tenant = self.tenant.as_ref().map(Tenant::parse).transpose();
        let scope = self.scope.as_ref().map(Scope::parse).transpose();
        let filter = Filter {
            tenant: tenant.map_err(|refusal| invalid("tenant", refusal))?,
            scope: scope.map_err(|refusal| invalid("scope", refusal))?,
            state: self.state.as_deref().map(state).transpose()?,
        };
        let order = self.order(&filter)?;
        let after = match order {
            PageOrder::Id => self.after.as_deref().map(operation_id).transpose()?,
            PageOrder::Oldest(_) => None,
        };
        let limit = self.limit.unwrap_or(PAGE_RECORDS_DEFAULT);
        if !(1..=PAGE_RECORDS_MAX).contains(&limit) {
            let detail = format!("limit: {limit} is outside 1 to {PAGE_RECORDS_MAX}");
            return Err(AdminProblem::invalid(detail));
        }
        let key = self.key.as_ref().map(Key::parse).transpose();
        let key = key.map_err(|refusal| invalid("key", refusal))?;
        Ok(ListWish { filter, key, page: Page { after, limit }, order })
    }

    fn order(&self, filter: &Filter) -> Result<PageOrder, AdminProblem> {
        match self.order.as_deref() {
            None | Some("id") => Ok(PageOrder::Id),
            Some("oldest") if filter.state != Some(StateTag::InDoubt) || self.key.is_some() => {
                let detail =
                    "order: `oldest` is for what is in doubt (`state=in_doubt`), without a key";
                Err(AdminProblem::invalid(detail))
            }
            Some("oldest") => {
                let unknown = || AdminProblem::invalid("after: send the `next` of the page before");
                let after = self.after.as_deref();
                let after = after.map(|text| PlaceInTime::parse(text).ok_or_else(unknown));
                Ok(PageOrder::Oldest(after.transpose()?))
            }
            Some(word) => {
                Err(AdminProblem::invalid(format!("order: `{word}` is none of id, oldest")))
            }
        }
    }
}

fn state(word: &str) -> Result<StateTag, AdminProblem> {
    let known = StateTag::ALL.into_iter().find(|state| state.as_str() == word);
    known.ok_or_else(|| {
        let words = StateTag::ALL.map(StateTag::as_str).join(", ");
        AdminProblem::invalid(format!("state: `{word}` is none of {words}"))
    })
}

/// The id as listings show it, or as a client was told it.
pub(super) fn operation_id(text: &str) -> Result<OperationId, AdminProblem> {
    OperationId::from_operator(text).map_err(|refusal| AdminProblem::invalid(refusal.to_string()))
}
