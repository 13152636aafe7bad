use std::{
    io,
    thread::{self, JoinHandle},
};

use tokio::sync::{mpsc, oneshot};

use crate::error::{Stopped, TransactError};

/// A queue of jobs and the threads that serve it. Dropped, it waits until what is queued is finished.
#[derive(Debug)]
pub struct Threads<J> {
    /// `None` while it is being dropped.
    queue: Option<mpsc::Sender<J>>,
    threads: Vec<JoinHandle<()>>,
}

impl<J> Threads<J> {
    /// A queue nobody serves yet, and its other end. Beyond `jobs_max` callers wait to hand theirs over.
    pub fn new(jobs_max: usize) -> (Self, mpsc::Receiver<J>) {
        let (queue, jobs) = mpsc::channel(jobs_max);
        (Self { queue: Some(queue), threads: Vec::new() }, jobs)
    }

    /// Starts a thread, which must end when the queue does.
    pub fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(thread::Builder::new().name(name.to_owned()).spawn(run)?);
        Ok(())
    }

    /// Hands a job over; once it is, only its answer says what became of it.
    pub async fn ask<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<T>) -> J,
    ) -> Result<T, TransactError> {
        let (reply, answer) = oneshot::channel();
        let stopped = || TransactError::unavailable(Stopped);
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue.send(job(reply)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| TransactError::unconfirmed(Stopped))
    }
}

impl<J> Drop for Threads<J> {
    fn drop(&mut self) {
        drop(self.queue.take());
        for thread in self.threads.drain(..) {
            // A panic was told to whoever waited for its answer.
            let _ = thread.join();
        }
    }
}
