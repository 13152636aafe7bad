//! A server that is made slow where that is needed, if there is a way.

use std::time::Duration;

use crate::{Examiner, ProbeInterruption, ProbeLog};

/// The server, as fast as it is, or slow until it is restored.
#[derive(Debug)]
pub(crate) struct Slowable<'a> {
    examiner: &'a Examiner,
    slowness: Option<Duration>,
}

impl<'a> Slowable<'a> {
    /// As it is.
    pub(crate) fn new(examiner: &'a Examiner) -> Self {
        Self { examiner, slowness: None }
    }

    /// Makes it slow; whether that is new.
    pub(crate) async fn slow_down(&mut self, log: &ProbeLog) -> Result<bool, ProbeInterruption> {
        if self.slowness.is_some() {
            return Ok(false);
        }
        self.slowness = self.examiner.slow_server().await?;
        if self.slowness.is_some() {
            log.note("the server was made slow, so that requests meet");
        }
        Ok(self.slowness.is_some())
    }

    /// How long an answer takes now.
    pub(crate) fn latency(&self) -> Duration {
        let learned = self.examiner.learned().latency;
        self.slowness.map_or(learned, |slowness| slowness.max(learned))
    }

    /// What would help where even this is too fast.
    pub(crate) fn wanted(&self) -> &'static str {
        match self.examiner.examination().hooks.slow {
            Some(_) => "a slower operation",
            None => "a slower operation (`--slow-hook`)",
        }
    }

    /// Makes it as fast as it was. Whoever made it slow calls this, whatever came of it.
    pub(crate) async fn restore(self) -> Result<(), ProbeInterruption> {
        if self.slowness.is_some() { self.examiner.fast_server().await } else { Ok(()) }
    }
}
