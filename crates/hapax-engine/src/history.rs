//! Notes what happened to a record apart from the usual, for whoever looks at it later.
//!
//! A note is written after the write it tells of was confirmed, by a task of its own: nobody waits for it, a store that
//! does not answer holds up nothing else, and a process that dies in between leaves a note out. None is written for what
//! was not. What goes as it should (claimed, run, completed) is never noted, and costs nothing here.

use std::{sync::Arc, time::Duration};

use hapax_core::{Deed, Doubt, Fence, Note, OperationId, Owner, Record, Stamp, StateTag};
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};

use crate::engine::Inner;

/// Most notes that wait to be written; what comes on top is left out.
const WAITING_MAX: usize = 1024;
/// Most notes that are written in a row.
const BURST: u32 = 1024;
/// How often one more may follow: a service that fails for a day must not fill the store with notes.
const ONE_MORE_EVERY: Duration = Duration::from_secs(1);

/// Where notes wait to be written.
#[derive(Debug)]
pub(crate) struct NoteQueue(mpsc::Sender<Note>);

/// The notes that wait.
pub(crate) type WaitingNotes = mpsc::Receiver<Note>;

impl NoteQueue {
    pub(crate) fn new() -> (Self, WaitingNotes) {
        let (sender, queue) = mpsc::channel(WAITING_MAX);
        (Self(sender), queue)
    }

    /// Somebody follows an owner who had begun.
    pub(crate) fn took_over(&self, taken: &Record, from: Stamp) {
        let how = match from.tag {
            StateTag::InDoubt => "which was in doubt",
            StateTag::Running => "whose lease was over",
            // Nothing was sent by any of these, and what nobody began is no news.
            StateTag::Pending
            | StateTag::Completed
            | StateTag::Failed
            | StateTag::Released
            | StateTag::Buried => return,
        };
        let why = format!(
            "attempt {} (owner {}) took over from attempt {} (owner {}), {how}",
            taken.fence.get(),
            name(taken.owner),
            from.fence.get(),
            name(from.owner)
        );
        self.note(taken, taken.fence, Deed::TookOver, &why);
    }

    pub(crate) fn sent_again(&self, record: &Record) {
        let (fence, owner) = (record.fence.get(), name(record.owner));
        let why = format!("it is sent once more, as attempt {fence} (owner {owner})");
        self.note(record, record.fence, Deed::SentAgain, &why);
    }

    pub(crate) fn asked(&self, record: &Record, said: &str) {
        let why = format!("attempt {} asked what became of it: {said}", record.fence.get());
        self.note(record, record.fence, Deed::Asked, &why);
    }

    pub(crate) fn left_in_doubt(&self, record: &Record, doubt: Doubt) {
        let what = match doubt {
            Doubt::Unanswered => "it was sent, and no complete answer came back",
            Doubt::Interrupted => "it was cut off before its answer came",
            Doubt::OwnerVanished => "its owner vanished",
        };
        let (fence, owner) = (record.fence.get(), name(record.owner));
        let why = format!("attempt {fence} (owner {owner}) was left in doubt: {what}");
        self.note(record, record.fence, Deed::LeftInDoubt, &why);
    }

    /// The key was given back, by its owner or by somebody who saw that the owner had vanished.
    pub(crate) fn gave_back(&self, record: &Record, who: GivenBackBy) {
        let what = match who {
            GivenBackBy::Owner => "nothing was sent, or its answer says that nothing happened",
            GivenBackBy::Sweeper => "its owner vanished, and whoever comes next sends it again",
        };
        let (fence, owner) = (record.fence.get(), name(record.owner));
        let why = format!("attempt {fence} (owner {owner}) was given back: {what}");
        self.note(record, record.fence, Deed::GaveBack, &why);
    }

    fn note(&self, record: &Record, fence: Fence, deed: Deed, why: &str) {
        let id: OperationId = record.operation.id();
        if let Some(note) = Note::of_hapax(id, fence, deed, why) {
            // One that finds no room is left out.
            let _ = self.0.try_send(note);
        }
    }
}

/// Who gave a key back.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GivenBackBy {
    Owner,
    Sweeper,
}

/// Writes notes, one at a time, until told to stop; what waits then is still written, if the process lives.
pub(crate) async fn run(
    inner: Arc<Inner>,
    mut queue: WaitingNotes,
    mut stop: watch::Receiver<bool>,
) {
    let mut left = BURST;
    loop {
        let note = tokio::select! {
            biased;
            note = queue.recv() => note,
            _ = stop.wait_for(|stop| *stop) => return,
            () = sleep(ONE_MORE_EVERY), if left < BURST => {
                left += 1;
                continue;
            }
        };
        let Some(note) = note else { return };
        write(&inner, note).await;
        left -= 1;
        if left == 0 {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = sleep(ONE_MORE_EVERY) => left = 1,
            }
        }
    }
}

async fn write(inner: &Inner, note: Note) {
    let (id, deed) = (note.id, note.deed.as_str());
    if let Err(error) = inner.store.note(note).await {
        tracing::debug!(operation = %id, deed, %error, "what happened was not noted");
    }
}

fn name(owner: Owner) -> String {
    format!("{:016x}", owner.0)
}
