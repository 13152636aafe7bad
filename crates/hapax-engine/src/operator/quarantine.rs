//! What a person does about a store that may have forgotten keys.

use hapax_core::{
    Reason, StoreError,
    incarnation::{
        Finding, IncarnationChange, IncarnationMark, IncarnationReading, Lifted, LossCause,
        compare, first_mark, noted,
    },
    limits::CLAIM_ROUNDS_MAX,
};

use super::Operator;

impl Operator {
    /// Which database the store is, what is kept about its past, and who is at work on it.
    pub async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        self.store.incarnation().await
    }

    /// Has keys that are not in the store not be run, from within seconds on: for whoever restored a database and
    /// knows that it has forgotten some.
    pub async fn begin_quarantine(&self) -> Result<IncarnationMark, StoreError> {
        self.change_mark(|reading| noted(reading, None, LossCause::Declared)).await
    }

    /// Lets keys that are not in the store be run again. Right where none of them was used in what the store
    /// has forgotten, or where a second effect does no harm.
    pub async fn lift_quarantine(&self, reason: &Reason) -> Result<IncarnationMark, StoreError> {
        self.change_mark(|reading| {
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
        })
        .await
    }

    async fn change_mark(
        &self,
        next: impl Fn(&IncarnationReading) -> IncarnationMark,
    ) -> Result<IncarnationMark, StoreError> {
        for _ in 0..CLAIM_ROUNDS_MAX {
            let reading = self.store.incarnation().await?;
            let (mark, gone) = (next(&reading), Vec::new());
            let expected = reading.mark.map(|mark| mark.position);
            let change = IncarnationChange { expected, mark: mark.clone(), present: None, gone };
            if self.store.keep_incarnation(change).await? {
                return Ok(mark);
            }
        }
        Err(StoreError::unavailable("others kept changing what the store keeps about its past"))
    }
}
