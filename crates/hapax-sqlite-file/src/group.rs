//! The thread that writes.
//!
//! It takes everything that is queued, performs it in one transaction and answers when that is on
//! disk: the more callers there are, the more of them share one sync.

use std::fmt;

use tokio::sync::mpsc;

use crate::writer::{Connect, FileWriter};

/// A write that shares its transaction with those that are asked for at the same time.
pub trait GroupWrite<D>: Send + Sized + 'static {
    /// A group that has reached either takes no more.
    const FULL: GroupSize;

    /// What it adds to its group.
    fn size(&self) -> GroupSize;

    /// Performs all of them, and answers each.
    fn perform(group: Vec<Self>, writer: &mut FileWriter<D>);
}

/// How much is written together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupSize {
    /// Rows, roughly.
    pub writes: usize,
    /// Their bytes, roughly.
    pub bytes: usize,
}

/// What the thread that writes can be asked for.
pub enum WriterJob<W, D> {
    /// A write among others.
    Grouped(W),
    /// Work in transactions of its own.
    Alone(WriterTask<D>),
}

/// Work that only its asker understands.
pub type WriterTask<D> = Box<dyn FnOnce(&mut FileWriter<D>) + Send>;

impl<D: Connect> FileWriter<D> {
    /// Performs jobs until nobody can send any more.
    pub fn run<W: GroupWrite<D>>(mut self, mut jobs: mpsc::Receiver<WriterJob<W, D>>) {
        let mut next = jobs.blocking_recv();
        while let Some(job) = next.take() {
            match job {
                WriterJob::Grouped(first) => {
                    let group;
                    (group, next) = gather(first, &mut jobs);
                    W::perform(group, &mut self);
                }
                WriterJob::Alone(work) => work(&mut self),
            }
            next = next.or_else(|| jobs.blocking_recv());
        }
    }
}

/// Those that wait already, up to a full group, and the job that is next if it is not for the group.
fn gather<W: GroupWrite<D>, D>(
    first: W,
    jobs: &mut mpsc::Receiver<WriterJob<W, D>>,
) -> (Vec<W>, Option<WriterJob<W, D>>) {
    let mut size = first.size();
    let mut group = vec![first];
    while size.writes < W::FULL.writes && size.bytes < W::FULL.bytes {
        match jobs.try_recv() {
            Ok(WriterJob::Grouped(write)) => {
                let more = write.size();
                size.writes += more.writes;
                size.bytes += more.bytes;
                group.push(write);
            }
            Ok(alone @ WriterJob::Alone(_)) => return (group, Some(alone)),
            Err(_) => break,
        }
    }
    (group, None)
}

impl<W, D> fmt::Debug for WriterJob<W, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grouped(_) => "Grouped(..)",
            Self::Alone(_) => "Alone(..)",
        })
    }
}
