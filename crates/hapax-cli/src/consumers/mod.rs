//! `hapax consumers`: who consumes messages on a store, and what could not be acted on.

mod print;

use std::io;

use hapax::StoreError;
use hapax_core::inbox::{ConsumerName, InboxAdmin};
use hapax_gateway::admin::documents::{
    ConsumerReference, ConsumerRow, ConsumersDocument, LetterDocument, LettersDocument,
};

use crate::{
    args::{ConsumersListArgs, ConsumersTask, DeadArgs, OutboxStoreArgs},
    store::{Access, InvalidAddress, OpenError, OpenStore, StoreAddress},
};

/// Why consumers could not be looked at, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConsumersError {
    #[error("--store or HAPAX_STORE is no store's address")]
    Address(#[from] InvalidAddress),
    #[error("nobody can consume on a store in memory; give sqlite:PATH or postgres://...")]
    Memory,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the inbox could not be read")]
    Store(#[from] StoreError),
    #[error("there is no consumer {name:?} of {tenant:?}; see `hapax consumers list`")]
    Unknown { name: String, tenant: String },
    #[error("cannot print the answer")]
    Print(#[source] io::Error),
    #[error("cannot start")]
    Runtime(#[source] io::Error),
}

/// Looks, and prints what there is.
pub(crate) fn run(task: &ConsumersTask) -> Result<(), ConsumersError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let looked = runtime.map_err(ConsumersError::Runtime)?.block_on(look(task));
    match looked {
        // Whoever read the answer has heard enough.
        Err(ConsumersError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        looked => looked,
    }
}

async fn look(task: &ConsumersTask) -> Result<(), ConsumersError> {
    let (ConsumersTask::List(ConsumersListArgs { store, .. })
    | ConsumersTask::Dead(DeadArgs { store, .. })) = task;
    match open(store).await? {
        OpenStore::Memory(_) => Err(ConsumersError::Memory),
        OpenStore::Sqlite(inbox) => tell(&inbox, task).await,
        OpenStore::Postgres(inbox) => tell(&inbox, task).await,
    }
}

async fn open(store: &OutboxStoreArgs) -> Result<OpenStore, ConsumersError> {
    let address: StoreAddress = store.file.or(&store.store).parse()?;
    Ok(OpenStore::open(&address, Access::Look).await?)
}

async fn tell(inbox: &impl InboxAdmin, task: &ConsumersTask) -> Result<(), ConsumersError> {
    let told = match task {
        ConsumersTask::List(args) => print::consumers(&list(inbox, args).await?, args.store.json),
        ConsumersTask::Dead(args) => print::letters(&dead(inbox, args).await?, args.store.json),
    };
    told.map_err(ConsumersError::Print)
}

async fn list(
    inbox: &impl InboxAdmin,
    args: &ConsumersListArgs,
) -> Result<ConsumersDocument, ConsumersError> {
    let limit = usize::from(args.limit);
    // One more than is shown says whether there are more.
    let mut found = inbox.consumers(None, limit + 1).await?;
    let is_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| is_more).map(|last| ConsumerReference::from(&last.name));
    Ok(ConsumersDocument { consumers: found.iter().map(ConsumerRow::of).collect(), next })
}

async fn dead(inbox: &impl InboxAdmin, args: &DeadArgs) -> Result<LettersDocument, ConsumersError> {
    let (name, tenant) = (args.consumer.clone(), args.tenant.clone());
    let consumer = inbox.consumer(ConsumerName { tenant: tenant.clone(), name: name.clone() });
    let consumer = consumer.await?.ok_or(ConsumersError::Unknown { name, tenant })?;
    let limit = usize::from(args.limit);
    let mut found = inbox.letters(consumer.number, None, limit + 1).await?;
    let is_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| is_more).map(|last| LetterDocument::of(last).reference);
    Ok(LettersDocument { letters: found.iter().map(LetterDocument::of).collect(), next })
}
