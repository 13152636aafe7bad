//! What a person does about a store that may have forgotten keys.

use hapax_core::{
    Reason, StoreError, Timestamp,
    incarnation::{
        Finding, IncarnationChange, IncarnationMark, IncarnationReading, Lifted, LossCause,
        compare, first_mark, noted,
    },
    limits::CLAIM_ROUNDS_MAX,
};

use super::Operator;

/// Why a quarantine that a person saw was not lifted.
#[derive(Debug, thiserror::Error)]
pub enum LiftError {
    /// It is over: keys that are not in the store are run.
    #[error("the store is not quarantined any more")]
    Over,
    /// It is another one than the person saw: the store may have forgotten more since then.
    #[error("the store may have forgotten more since you looked: look again")]
    Another,
    /// The store could not be read or written, or did not confirm it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Operator {
    /// Which database the store is, what is kept about its past, and who is at work on it.
    pub async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        self.store.incarnation().await
    }

    /// Has keys that are not in the store not be run, from within seconds on: for whoever restored a database and
    /// knows that it has forgotten some.
    pub async fn begin_quarantine(&self) -> Result<IncarnationMark, StoreError> {
        self.change_mark(|reading| Ok(noted(reading, None, LossCause::Declared))).await
    }

    /// Lets keys that are not in the store be run again. Right where none of them was used in what the store
    /// has forgotten, or where a second effect does no harm.
    pub async fn lift_quarantine(&self, reason: &Reason) -> Result<IncarnationMark, StoreError> {
        self.change_mark(|reading| Ok(lifted(reading, reason))).await
    }

    /// The same, if the quarantine is the one that began at that instant.
    pub async fn lift_quarantine_of(
        &self,
        since: Timestamp,
        reason: &Reason,
    ) -> Result<IncarnationMark, LiftError> {
        self.change_mark(|reading| {
            may_lift(reading, since)?;
            Ok(lifted(reading, reason))
        })
        .await
    }

    /// Whether the quarantine that began at that instant would be lifted now. Changes nothing.
    pub async fn examine_lift(&self, since: Timestamp) -> Result<(), LiftError> {
        may_lift(&self.store.incarnation().await?, since)
    }

    async fn change_mark<E: From<StoreError>>(
        &self,
        next: impl Fn(&IncarnationReading) -> Result<IncarnationMark, E>,
    ) -> Result<IncarnationMark, E> {
        for _ in 0..CLAIM_ROUNDS_MAX {
            let reading = self.store.incarnation().await?;
            let (mark, gone) = (next(&reading)?, Vec::new());
            let expected = reading.mark.map(|mark| mark.position);
            let change = IncarnationChange { expected, mark: mark.clone(), present: None, gone };
            if self.store.keep_incarnation(change).await? {
                return Ok(mark);
            }
        }
        let why = "others kept changing what the store keeps about its past";
        Err(StoreError::unavailable(why).into())
    }
}

fn may_lift(reading: &IncarnationReading, since: Timestamp) -> Result<(), LiftError> {
    match (compare(reading, None), reading.mark.as_ref().and_then(|mark| mark.quarantine.as_ref()))
    {
        (Finding::Changed(_), _) => Err(LiftError::Another),
        (Finding::New | Finding::Same | Finding::Noted | Finding::Outdated, None) => {
            Err(LiftError::Over)
        }
        (Finding::New | Finding::Same | Finding::Noted | Finding::Outdated, Some(there)) => {
            if there.since == since { Ok(()) } else { Err(LiftError::Another) }
        }
    }
}

fn lifted(reading: &IncarnationReading, reason: &Reason) -> IncarnationMark {
    let next = match (compare(reading, None), &reading.mark) {
        (Finding::Same | Finding::Noted | Finding::Outdated, Some(mark)) => {
            IncarnationMark { position: mark.position + 1, ..mark.clone() }
        }
        (Finding::Changed(cause), _) => noted(reading, None, cause),
        (Finding::New | Finding::Same | Finding::Noted | Finding::Outdated, _) => {
            first_mark(reading)
        }
    };
    let lifted = Some(Lifted { at: reading.now, reason: reason.clone() });
    IncarnationMark { quarantine: None, lifted, ..next }
}
