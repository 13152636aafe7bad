//! Reads what an episode has left behind.

use std::collections::BTreeMap;

use hapax_client::{
    Conclusion,
    journal::{EntryFilter, EntryStateTag, Journal, JournalEntry, JournalError},
};
use hapax_core::Body;

use super::{
    args::ClientVictimArgs,
    books::ServerBooks,
    check::{ClientFacts, KeptCall},
    told::Told,
};
use crate::error::CrashError;

/// What the server, the journal and the callers know, once the server has nothing in hand.
pub(super) async fn gather(
    args: &ClientVictimArgs,
    books: &ServerBooks,
) -> Result<ClientFacts, CrashError> {
    books.idle().await;
    let told = Told::read(&args.dir).map_err(CrashError::io("read what callers were told"))?;
    Ok(ClientFacts { seen: books.read(), kept: kept(args).await?, told })
}

async fn kept(args: &ClientVictimArgs) -> Result<BTreeMap<String, KeptCall>, CrashError> {
    let path = args.journal();
    let journal = Journal::open_inline(&path, args.options()).map_err(|error| {
        CrashError::Open { address: path.display().to_string(), source: error.into() }
    })?;
    let mut all = BTreeMap::new();
    let mut filter = EntryFilter::default();
    loop {
        let page = journal.list(filter).await.map_err(unread)?;
        let Some(last) = page.last() else { return Ok(all) };
        filter.after = Some(last.position);
        for listed in page {
            let name = listed.entry.map_err(unread)?.name;
            if let Some(entry) = journal.find(&name).await.map_err(unread)? {
                all.insert(name.as_str().to_owned(), said(&entry));
            }
        }
    }
}

fn said(entry: &JournalEntry) -> KeptCall {
    let conclusion = match entry.state.tag() {
        EntryStateTag::Pending => None,
        EntryStateTag::Done => Some(Conclusion::Done),
        EntryStateTag::Refused => Some(Conclusion::Refused),
        EntryStateTag::Unknown => Some(Conclusion::Unknown),
        EntryStateTag::GaveUp => Some(Conclusion::GaveUp),
    };
    let answer = match entry.state.answer().map(hapax_core::Outcome::body) {
        Some(Body::Kept(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(_) | None => String::new(),
    };
    KeptCall { key: entry.key.as_str().to_owned(), conclusion, answer }
}

fn unread(error: JournalError) -> CrashError {
    CrashError::refused("read the journal")(error)
}
