//! Where tests hold the handlers, so that what must overlap does.

use tokio::sync::watch;

/// Handlers pass it between their claim and their effect, each with a number from one.
#[derive(Debug)]
pub(crate) struct HandlerGate {
    passing: watch::Sender<usize>,
    come: watch::Sender<usize>,
}

impl HandlerGate {
    pub(crate) fn open() -> Self {
        Self { passing: watch::Sender::new(usize::MAX), come: watch::Sender::new(0) }
    }

    /// Lets pass whose number is up to this.
    pub(crate) fn let_pass(&self, count: usize) {
        self.passing.send_replace(count);
    }

    /// Counts one that has come, and waits until it may pass.
    pub(crate) async fn pass(&self) {
        let mut number = 0;
        self.come.send_modify(|come| {
            *come += 1;
            number = *come;
        });
        // The sender is in `self`, so it cannot be gone.
        let _ = self.passing.subscribe().wait_for(|passing| number <= *passing).await;
    }

    /// Waits until this many have come.
    pub(crate) async fn come(&self, count: usize) {
        let _ = self.come.subscribe().wait_for(|come| *come >= count).await;
    }

    pub(crate) fn count(&self) -> usize {
        *self.come.borrow()
    }
}
