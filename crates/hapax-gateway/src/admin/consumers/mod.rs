//! Consumers and their dead letters, looked at and looked after by people.

mod any_inbox;
pub(super) mod documents;
mod letters;

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{
        DefaultBodyLimit, Path, Query, State,
        rejection::{BytesRejection, QueryRejection},
    },
    response::Response,
    routing::{get, post},
};
use hapax_core::{
    inbox::{CONSUMER_TENANT, ConsumerName, ConsumerSummary, Digest},
    limits::{LETTER_SHOWN_BYTES_MAX, PAGE_RECORDS_MAX},
};
use serde::{Deserialize, de::DeserializeOwned};

pub(super) use self::any_inbox::DynInbox;
use self::{
    documents::{
        ConsumerDocument, ConsumerReference, ConsumerRow, ConsumersDocument, HeldDocument,
        LetterChange, LetterDocument, LetterForecast, LetterOrder, LettersDocument,
        RetriedDocument,
    },
    letters::LetterDeed,
};
use super::{
    AdminState,
    access::Visitor,
    answer,
    change_order::{ORDER_BYTES_MAX, page_rows, read, reason},
    problem::AdminProblem,
};

/// Everything under `/v1/consumers`.
pub(super) fn routes() -> Router<AdminState> {
    Router::new()
        .route("/consumers", get(list))
        .route("/consumers/{consumer}", get(show))
        .route("/consumers/{consumer}/retried", get(retried))
        .route("/consumers/{consumer}/held", get(held))
        .route("/consumers/{consumer}/dead", get(dead))
        .route("/consumers/{consumer}/dead/{message}", get(letter))
        .route("/consumers/{consumer}/discard", post(discard))
        .route("/consumers/{consumer}/forgive", post(forgive))
        .layer(DefaultBodyLimit::max(ORDER_BYTES_MAX))
}

type AskedQuery<T> = Result<Query<T>, QueryRejection>;

fn understood<T: DeserializeOwned>(query: AskedQuery<T>) -> Result<T, AdminProblem> {
    let query = query.map_err(|refused| AdminProblem::invalid(refused.body_text()))?;
    Ok(query.0)
}

/// A page, and whose consumer is meant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageQuery {
    #[serde(default = "default_tenant")]
    tenant: String,
    after: Option<String>,
    limit: Option<usize>,
}

/// A page of dead letters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LettersQuery {
    #[serde(default = "default_tenant")]
    tenant: String,
    after: Option<String>,
    after_content: Option<String>,
    limit: Option<usize>,
}

/// One dead letter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LetterQuery {
    #[serde(default = "default_tenant")]
    tenant: String,
    content: String,
}

/// A consumer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConsumerQuery {
    #[serde(default = "default_tenant")]
    tenant: String,
}

fn default_tenant() -> String {
    CONSUMER_TENANT.to_owned()
}

async fn list(
    State(state): State<AdminState>,
    query: AskedQuery<PageQuery>,
) -> Result<Response, AdminProblem> {
    let PageQuery { tenant, after, limit } = understood(query)?;
    let after = after.map(|name| ConsumerName { tenant, name });
    let limit = page_rows(limit)?;
    let found = state.inbox()?.consumers(after, limit + 1).await?;
    let (found, next) = page(found, limit, |summary| ConsumerReference::from(&summary.name));
    let consumers = found.iter().map(ConsumerRow::of).collect();
    Ok(answer(&ConsumersDocument { consumers, next }))
}

async fn show(
    State(state): State<AdminState>,
    Path(name): Path<String>,
    query: AskedQuery<ConsumerQuery>,
) -> Result<Response, AdminProblem> {
    let (inbox, summary) = state.consumer(understood(query)?.tenant, name).await?;
    let found = inbox.partitions(summary.number, PAGE_RECORDS_MAX + 1).await?;
    let (found, more) = page(found, PAGE_RECORDS_MAX, |_| ());
    Ok(answer(&ConsumerDocument {
        row: ConsumerRow::of(&summary),
        partitions: found.iter().map(Into::into).collect(),
        more_partitions: more.is_some(),
    }))
}

async fn retried(
    State(state): State<AdminState>,
    Path(name): Path<String>,
    query: AskedQuery<PageQuery>,
) -> Result<Response, AdminProblem> {
    let PageQuery { tenant, after, limit } = understood(query)?;
    let limit = page_rows(limit)?;
    let (inbox, summary) = state.consumer(tenant, name).await?;
    let found = inbox.retried(summary.number, after, limit).await?;
    let messages = found.messages.iter().map(Into::into).collect();
    Ok(answer(&RetriedDocument { messages, next: found.next }))
}

async fn held(
    State(state): State<AdminState>,
    Path(name): Path<String>,
    query: AskedQuery<PageQuery>,
) -> Result<Response, AdminProblem> {
    let PageQuery { tenant, after, limit } = understood(query)?;
    let limit = page_rows(limit)?;
    let (inbox, summary) = state.consumer(tenant, name).await?;
    let found = inbox.held(summary.number, after, limit + 1).await?;
    let (found, next) = page(found, limit, |held| held.key.clone());
    Ok(answer(&HeldDocument { keys: found.iter().map(Into::into).collect(), next }))
}

async fn dead(
    State(state): State<AdminState>,
    Path(name): Path<String>,
    query: AskedQuery<LettersQuery>,
) -> Result<Response, AdminProblem> {
    let LettersQuery { tenant, after, after_content, limit } = understood(query)?;
    let limit = page_rows(limit)?;
    let after = match (after, after_content) {
        (None, None) => None,
        (Some(message_id), Some(content)) => Some((message_id, digest(&content)?)),
        (Some(_), None) | (None, Some(_)) => {
            return Err(AdminProblem::invalid("send `after` and `after_content` together"));
        }
    };
    let (inbox, summary) = state.consumer(tenant, name).await?;
    let found = inbox.letters(summary.number, after, limit + 1).await?;
    let (found, next) = page(found, limit, |letter| LetterDocument::of(letter).reference);
    let letters = found.iter().map(LetterDocument::of).collect();
    Ok(answer(&LettersDocument { letters, next }))
}

async fn letter(
    State(state): State<AdminState>,
    Path((name, message_id)): Path<(String, String)>,
    query: AskedQuery<LetterQuery>,
) -> Result<Response, AdminProblem> {
    let LetterQuery { tenant, content } = understood(query)?;
    let content = digest(&content)?;
    let (inbox, summary) = state.consumer(tenant, name).await?;
    let most = LETTER_SHOWN_BYTES_MAX;
    let found = inbox.letter(summary.number, message_id, content, most).await?;
    let found = found.ok_or_else(AdminProblem::unknown_letter)?;
    Ok(answer(&LetterDocument::with_content(&found)))
}

async fn discard(
    State(state): State<AdminState>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    query: AskedQuery<ConsumerQuery>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, AdminProblem> {
    let (tenant, order) = (understood(query)?.tenant, read(body)?);
    state.change(&visitor, ConsumerName { tenant, name }, order, LetterDeed::Discard).await
}

async fn forgive(
    State(state): State<AdminState>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    query: AskedQuery<ConsumerQuery>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, AdminProblem> {
    let (tenant, order) = (understood(query)?.tenant, read(body)?);
    state.change(&visitor, ConsumerName { tenant, name }, order, LetterDeed::Forgive).await
}

impl AdminState {
    fn inbox(&self) -> Result<DynInbox, AdminProblem> {
        self.inbox.load_full().map(|inbox| (*inbox).clone()).ok_or_else(AdminProblem::no_inbox)
    }

    async fn consumer(
        &self,
        tenant: String,
        name: String,
    ) -> Result<(DynInbox, ConsumerSummary), AdminProblem> {
        let (inbox, name) = (self.inbox()?, ConsumerName { tenant, name });
        let found = inbox.consumer(name.clone()).await?;
        Ok((inbox, found.ok_or_else(|| AdminProblem::unknown_consumer(&name))?))
    }

    /// Does this to a dead letter, if it is still the one that was seen, or says what it would come to.
    async fn change(
        &self,
        visitor: &Visitor,
        ConsumerName { tenant, name }: ConsumerName,
        order: LetterOrder,
        deed: LetterDeed,
    ) -> Result<Response, AdminProblem> {
        let (reason, content) = (reason(visitor, &order.who, &order.why)?, digest(&order.content)?);
        let (inbox, summary) = self.consumer(tenant, name).await?;
        let found = inbox.letter(summary.number, order.message_id, content, 0).await?;
        let letter = found.ok_or_else(AdminProblem::unknown_letter)?.letter;
        if letter.id.dead_at.to_string() != order.dead_at {
            return Err(AdminProblem::letter_changed());
        }
        let consumer = ConsumerReference::from(&summary.name);
        let would = deed.foreseen(&letter, summary.keeps_offsets)?;
        if order.dry_run {
            let letter = LetterDocument::of(&letter);
            return Ok(answer(&LetterForecast { consumer, would, letter }));
        }
        let id = letter.id.clone();
        let is_done = match deed {
            LetterDeed::Discard => inbox.discard(summary.number, id).await?,
            LetterDeed::Forgive => inbox.forgive(summary.number, id).await?,
        };
        if !is_done {
            return Err(AdminProblem::letter_changed());
        }
        let (message_id, done) = (letter.id.message_id, deed.done());
        let ConsumerReference { tenant, name } = &consumer;
        let (why_dead, who, why) = (&*letter.reason, reason.who(), reason.why());
        tracing::warn!(
            tenant,
            consumer = name,
            message_id,
            why_dead,
            done,
            who,
            why,
            "a person changed a dead letter"
        );
        Ok(answer(&LetterChange { consumer, message_id, done: done.to_owned() }))
    }
}

/// A page, and what names its last row if there is another page.
fn page<T, N>(mut found: Vec<T>, limit: usize, name: impl Fn(&T) -> N) -> (Vec<T>, Option<N>) {
    let is_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| is_more).map(name);
    (found, next)
}

fn digest(text: &str) -> Result<Digest, AdminProblem> {
    let invalid = || AdminProblem::invalid("content: a digest is 32 hexadecimal digits");
    Digest::from_hex(text).ok_or_else(invalid)
}
