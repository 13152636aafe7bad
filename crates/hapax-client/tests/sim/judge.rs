//! What clients were told, and what their journals say, against what really happened.

use std::time::Duration;

use hapax_client::journal::{EntryState, Journal, JournalEntry, Name};
use hapax_core::{Body, Recovery};
use tokio::runtime::Builder;

use super::{
    client::DEADLINE,
    plan::is_refused,
    world::{Account, Heard, Word, World},
};

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There was more than one effect.
    Twice { name: String, receipts: Vec<u32> },
    /// A client was told something that is not so.
    WrongWord { name: String, word: Word, receipts: Vec<u32> },
    /// The journal says something that is not so, or nothing.
    WrongEntry { name: String, entry: String, receipts: Vec<u32> },
    /// Nothing went wrong any more, and still the client was told nothing final.
    NoAnswer { name: String, word: Option<Word> },
    /// A call took longer than its deadline.
    TooLate { name: String, took: Duration },
    /// Clients were not finished although nothing went wrong any more.
    Restless,
}

/// A deadline is kept to the steps of the simulation and the timers of a runtime.
const SLACK: Duration = Duration::from_millis(50);

pub(crate) fn judge(world: &World, journal: impl Fn(usize) -> Journal) -> Vec<Failure> {
    let mut failures = Vec::new();
    let heard = world.all_heard();
    for group in world.plan().groups() {
        let journal = journal(group);
        for name in world.plan().names(group) {
            let account = world.account(&name);
            let told: Vec<_> = heard.iter().filter(|heard| heard.name == name).collect();
            failures.extend(judge_one(world, &name, &account, &told));
            failures.extend(judge_entry(&name, &account, entry(&journal, &name).as_ref()));
        }
    }
    failures
}

fn judge_one(world: &World, name: &str, account: &Account, told: &[&Heard]) -> Vec<Failure> {
    let (name, receipts) = (name.to_owned(), account.receipts.clone());
    let mut failures = Vec::new();
    if receipts.len() > 1 {
        failures.push(Failure::Twice { name: name.clone(), receipts: receipts.clone() });
    }
    for heard in told {
        let is_so = match heard.word {
            Word::Done { receipt } => receipts == [receipt],
            Word::Refused => receipts.is_empty() && is_refused(&name),
            // It may be sent again, and have its effect then.
            Word::GaveUp => heard.effects == 0,
            Word::Unknown => true,
        };
        if !is_so {
            let (word, receipts) = (heard.word, receipts.clone());
            failures.push(Failure::WrongWord { name: name.clone(), word, receipts });
        }
        if heard.took > DEADLINE + SLACK {
            failures.push(Failure::TooLate { name: name.clone(), took: heard.took });
        }
    }
    let last = told.iter().rev().find(|heard| heard.is_final).map(|heard| heard.word);
    // What nobody answered for stays in doubt where nobody can ask and nothing is repeated.
    let may_stay_unknown = world.plan().recovery == Recovery::Hold && account.asked > 0;
    match last {
        Some(Word::Done { .. } | Word::Refused) => {}
        Some(Word::Unknown) if may_stay_unknown => world.count(|counts| counts.left_unknown += 1),
        word @ (Some(Word::Unknown | Word::GaveUp) | None) => {
            failures.push(Failure::NoAnswer { name, word });
        }
    }
    failures
}

fn judge_entry(name: &str, account: &Account, entry: Option<&JournalEntry>) -> Option<Failure> {
    let is_so = match entry.map(|entry| &entry.state) {
        Some(EntryState::Done { answer, .. }) => {
            let said = if let Body::Kept(bytes) = answer.body() {
                String::from_utf8_lossy(bytes).parse().ok()
            } else {
                None
            };
            said.is_some_and(|receipt: u32| account.receipts == [receipt])
        }
        Some(EntryState::Refused { .. }) => account.receipts.is_empty(),
        Some(EntryState::Unknown { .. }) => true,
        Some(EntryState::Pending { .. } | EntryState::GaveUp { .. }) | None => false,
    };
    let receipts = account.receipts.clone();
    let entry = || format!("{:?}", entry.map(|entry| &entry.state));
    (!is_so).then(|| Failure::WrongEntry { name: name.to_owned(), entry: entry(), receipts })
}

fn entry(journal: &Journal, name: &str) -> Option<JournalEntry> {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(journal.find(&Name::parse(name).unwrap())).unwrap()
}
