//! What surrounds the conduct of one running server: its effects, its keys, and what tests do to it.

use std::{
    io,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::{
    conduct::Conduct,
    effects::EffectLedger,
    file::{StateFile, StateLine},
    gate::HandlerGate,
    keyring::Keyring,
    response::PlainResponse,
    submission::Submission,
};

/// Effects, keys and hooks of one running server.
#[derive(Debug)]
pub(crate) struct Enclosure {
    /// What it remembers.
    pub(crate) keys: Keyring,
    pub(crate) effects: EffectLedger,
    pub(crate) gate: HandlerGate,
    induced: Mutex<InducedFailure>,
    delay: Mutex<Duration>,
    file: Option<StateFile>,
}

/// Where the next run of the handler fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InducedFailure {
    /// It does not.
    #[default]
    None,
    /// Before its effect, which it does not have.
    BeforeEffect,
    /// After its effect.
    AfterEffect,
}

/// What came of a run of the handler.
#[derive(Debug, Clone)]
pub(crate) struct HandlerRun {
    /// What its client is told.
    pub(crate) now: PlainResponse,
    /// What a retry must be told, or nothing where nothing happened.
    pub(crate) later: Option<PlainResponse>,
}

impl Enclosure {
    pub(crate) fn open(conduct: &dyn Conduct, state: Option<&Path>) -> io::Result<Self> {
        let (file, lines) = state.map(StateFile::open).transpose()?.unzip();
        let enclosure = Self {
            keys: Keyring::default(),
            effects: EffectLedger::default(),
            gate: HandlerGate::open(),
            induced: Mutex::default(),
            delay: Mutex::new(conduct.delay()),
            file,
        };
        for mut line in lines.unwrap_or_default() {
            if let Some(effect) = line.effect.take() {
                enclosure.effects.restore(effect);
            }
            conduct.restore(&enclosure, line);
        }
        Ok(enclosure)
    }

    /// What a handler takes before it has its effect.
    pub(crate) async fn pause(&self) {
        let delay = *self.delay.lock().unwrap_or_else(PoisonError::into_inner);
        tokio::time::sleep(delay).await;
        self.gate.pass().await;
    }

    /// Has the effect, and writes it down together with the answer of its key, if that is given: its
    /// name and what it came with.
    pub(crate) fn effect(
        &self,
        submission: &Submission,
        key: Option<(String, String)>,
    ) -> HandlerRun {
        let failure = self.take_induced();
        let failed = || PlainResponse::problem(500, "the handler failed");
        let order = match submission.order() {
            Ok(order) if failure != InducedFailure::BeforeEffect => order,
            Ok(_) => return HandlerRun { now: failed(), later: None },
            Err(refusal) => return HandlerRun { now: refusal, later: None },
        };
        let effect = self.effects.add(submission.kind(), &order.marker, order.amount);
        let later = submission.created(&effect);
        let cookie = format!("visit={}; HttpOnly", effect.id);
        let mut line = StateLine { effect: Some(effect), ..StateLine::default() };
        if let Some((name, fingerprint)) = key {
            line.key = Some(name);
            line.fingerprint = Some(fingerprint);
            line.response = Some(later.clone());
        }
        self.write(&line);
        let now = match failure {
            InducedFailure::AfterEffect => failed(),
            InducedFailure::None | InducedFailure::BeforeEffect => {
                later.clone().with("set-cookie", cookie)
            }
        };
        HandlerRun { now, later: Some(later) }
    }

    /// Writes a line, if there is a file.
    ///
    /// # Panics
    ///
    /// If it cannot be written: a server without its disk has nothing to say.
    #[expect(clippy::expect_used, reason = "what is not on disk must not be told")]
    pub(crate) fn write(&self, line: &StateLine) {
        if let Some(file) = &self.file {
            file.append(line).expect("the file of the state takes a line");
        }
    }

    pub(crate) fn induce(&self, failure: InducedFailure) {
        *self.induced.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    pub(crate) fn set_delay(&self, delay: Duration) {
        *self.delay.lock().unwrap_or_else(PoisonError::into_inner) = delay;
    }

    fn take_induced(&self) -> InducedFailure {
        std::mem::take(&mut *self.induced.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
