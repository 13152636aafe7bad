//! What a part of an operation came to: kept under the operation, so that nobody repeats it.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::{
    codec::Unreadable,
    limits::{SEALING_BYTES_MAX, STEP_NAME_BYTES_MAX, STEP_RESULT_BYTES_MAX, STEPS_MAX},
    operation::{InvalidName, Key, OperationId, name, visible_ascii},
    store::KeepStep,
    time::Timestamp,
};

name!(
    /// What a step is called: its place in an operation does not change while operations are open.
    ///
    /// ```
    /// use hapax_core::{OperationId, StepName};
    ///
    /// let id: OperationId = "0123456789abcdef0123456789abcdef".parse()?;
    /// let charge = StepName::parse("charge")?;
    /// // Every attempt shows the provider the same key.
    /// assert_eq!(charge.key_for(id), charge.key_for(id));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    StepName,
    STEP_NAME_BYTES_MAX
);

impl StepName {
    /// The key this step shows downstream, spelled like a UUID.
    ///
    /// It depends on the operation and the name alone, so every attempt, every process and every
    /// life of the operation shows the same one: whoever deduplicates by it has one effect.
    pub fn key_for(&self, id: OperationId) -> Key {
        let mut hash = Sha256::new();
        hash.update(KEY_DOMAIN);
        hash.update(id.as_bytes());
        hash.update(self.as_str());
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&hash.finalize()[..16]);
        // A UUID of version 8: made by a rule of our own.
        uuid[6] = uuid[6] & 0x0f | 0x80;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        Key::from_uuid(uuid)
    }
}

/// Keeps these digests apart from all others.
const KEY_DOMAIN: &[u8] = b"hapax step key 1";

/// A finished step. Valid by construction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    number: u16,
    name: StepName,
    version: u16,
    result: Bytes,
}

impl Step {
    /// The step with this number, counted from one, whose result is within the limits.
    pub fn new(
        number: u16,
        name: StepName,
        version: u16,
        result: Bytes,
    ) -> Result<Self, InvalidStep> {
        if result.len() > STEP_RESULT_BYTES_MAX {
            return Err(InvalidStep::ResultTooLarge { len: result.len() });
        }
        Self::stored(number, name, version, result)
    }

    /// The same step with its result as an encrypting store keeps it, or as it was before.
    pub fn with_result(self, result: Bytes) -> Result<Self, InvalidStep> {
        Self::stored(self.number, self.name, self.version, result)
    }

    /// A step as it may be stored: encryption makes results larger.
    fn stored(
        number: u16,
        name: StepName,
        version: u16,
        result: Bytes,
    ) -> Result<Self, InvalidStep> {
        if !(1..=STEPS_MAX).contains(&number) {
            return Err(InvalidStep::Number { number });
        }
        if result.len() > STEP_RESULT_BYTES_MAX + SEALING_BYTES_MAX {
            return Err(InvalidStep::ResultTooLarge { len: result.len() });
        }
        Ok(Self { number, name, version, result })
    }

    /// Its place, counted from one.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// What it is called.
    pub fn name(&self) -> &StepName {
        &self.name
    }

    /// The version of its result's form.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// What it came to.
    pub fn result(&self) -> &Bytes {
        &self.result
    }
}

/// A step as a store tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredStep {
    /// When it was kept, by the store's clock.
    pub at: Timestamp,
    /// The step.
    pub step: Step,
}

/// Why a step cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidStep {
    /// An operation does not have that many steps.
    #[error("step {number} is outside 1 to {STEPS_MAX}; make it an operation of its own")]
    Number {
        /// The number asked for.
        number: u16,
    },
    /// The result is larger than the limit.
    #[error(
        "its result is {len} bytes; the limit is {STEP_RESULT_BYTES_MAX}: keep it elsewhere, and \
         its name here"
    )]
    ResultTooLarge {
        /// Its size in bytes.
        len: usize,
    },
}

/// The version of steps this code writes. It reads every version up to it.
pub const FORMAT: i16 = 1;

/// The steps of this life, in order, out of all that is stored for an operation.
///
/// What an earlier life left behind does not count. A gap means that something was lost.
pub fn open_life(life: Timestamp, rows: Vec<StepRow>) -> Result<Vec<StoredStep>, Unreadable> {
    let mut steps = Vec::with_capacity(rows.len());
    for row in rows {
        let of_life = row.life == life.as_micros();
        let stored = row.open()?;
        if of_life {
            steps.push(stored);
        }
    }
    steps.sort_unstable_by_key(|stored| stored.step.number);
    for (stored, expected) in steps.iter().zip(1..) {
        if stored.step.number != expected {
            let value = stored.step.number.to_string();
            return Err(Unreadable::Impossible { column: "number", value });
        }
    }
    Ok(steps)
}

/// A step as a store keeps it: plain columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRow {
    /// The operation's id.
    pub id: OperationId,
    /// When the life of the operation it belongs to began, in microseconds.
    pub life: i64,
    /// Its place, counted from one.
    pub number: i32,
    /// The version of the row.
    pub format: i16,
    /// What it is called.
    pub name: String,
    /// The version of its result's form.
    pub version: i32,
    /// When it was kept, in microseconds.
    pub at: i64,
    /// What it came to.
    pub result: Bytes,
    /// Of everything above but `at`.
    pub digest: [u8; 16],
}

impl StepRow {
    /// The row that keeps this step, taken at that instant.
    pub fn seal(at: Timestamp, keep: &KeepStep) -> Self {
        let step = &keep.step;
        let (number, version) = (i32::from(step.number), i32::from(step.version));
        let mut row = Self {
            id: keep.id,
            life: keep.life.as_micros(),
            number,
            format: FORMAT,
            name: step.name.as_str().to_owned(),
            version,
            at: at.as_micros(),
            result: step.result.clone(),
            digest: [0; 16],
        };
        row.digest = row.computed();
        row
    }

    /// The step kept in this row; what no version ever wrote, or what was altered, is refused.
    pub fn open(self) -> Result<StoredStep, Unreadable> {
        let impossible = |column, value: &dyn ToString| Unreadable::Impossible {
            column,
            value: value.to_string(),
        };
        if self.format > FORMAT {
            return Err(Unreadable::TooNew { found: self.format.into() });
        }
        if self.format != FORMAT {
            return Err(impossible("format", &self.format));
        }
        if self.digest != self.computed() {
            return Err(Unreadable::Altered);
        }
        let number = u16::try_from(self.number).map_err(|_| impossible("number", &self.number))?;
        let version =
            u16::try_from(self.version).map_err(|_| impossible("version", &self.version))?;
        let name = StepName::parse(&self.name).map_err(|refusal| impossible("name", &refusal))?;
        let step = Step::stored(number, name, version, self.result)
            .map_err(|refusal| impossible("step", &refusal))?;
        Ok(StoredStep { at: Timestamp::from_micros(self.at), step })
    }

    fn computed(&self) -> [u8; 16] {
        let mut hash = Sha256::new();
        hash.update(self.id.as_bytes());
        hash.update(self.life.to_be_bytes());
        hash.update(self.number.to_be_bytes());
        hash.update(self.format.to_be_bytes());
        hash.update(self.version.to_be_bytes());
        hash.update(u32::try_from(self.name.len()).unwrap_or(u32::MAX).to_be_bytes());
        hash.update(self.name.as_bytes());
        hash.update(&self.result);
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash.finalize()[..16]);
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        operation::{Operation, Scope, Tenant},
        record::{Fence, Owner},
    };

    fn id(key: &str) -> OperationId {
        let (tenant, scope) = (Tenant::parse("acme"), Scope::parse("POST /payments"));
        Operation::new(tenant.unwrap(), scope.unwrap(), Key::parse(key).unwrap()).id()
    }

    fn name(text: &str) -> StepName {
        StepName::parse(text).unwrap()
    }

    #[test]
    fn the_key_of_a_step_is_fixed_because_others_deduplicate_by_it() {
        let key = name("charge").key_for(id("k-1"));
        assert_eq!(key.as_str(), "3c24168c-26be-8f3c-91ab-bc1598c4d54a");
    }

    #[test]
    fn the_keys_of_two_steps_or_two_operations_differ() {
        let charge = name("charge").key_for(id("k-1"));
        assert_ne!(charge, name("mail").key_for(id("k-1")));
        assert_ne!(charge, name("charge").key_for(id("k-2")));
        assert_eq!(charge, name("charge").key_for(id("k-1")));
    }

    #[test]
    fn a_step_over_a_limit_is_refused_and_never_cut() {
        let step = |number, len| Step::new(number, name("s"), 1, Bytes::from(vec![7; len]));
        assert!(step(1, STEP_RESULT_BYTES_MAX).is_ok());
        assert!(step(STEPS_MAX, 0).is_ok());
        assert_eq!(step(0, 0), Err(InvalidStep::Number { number: 0 }));
        let number = STEPS_MAX + 1;
        assert_eq!(step(number, 0), Err(InvalidStep::Number { number }));
        let len = STEP_RESULT_BYTES_MAX + 1;
        assert_eq!(step(1, len), Err(InvalidStep::ResultTooLarge { len }));
        assert!(StepName::parse("n".repeat(STEP_NAME_BYTES_MAX)).is_ok());
        assert!(StepName::parse("n".repeat(STEP_NAME_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_row_that_was_altered_anywhere_is_refused() {
        let step = Step::new(3, name("charge"), 2, Bytes::from_static(b"{}")).unwrap();
        let (life, at) = (Timestamp::from_micros(5), Timestamp::from_micros(9));
        let (fence, owner) = (Fence::FIRST, Owner(1));
        let keep = KeepStep { id: id("k"), fence, owner, life, step: step.clone() };
        let row = StepRow::seal(at, &keep);
        assert_eq!(row.clone().open(), Ok(StoredStep { at, step }));
        let altered = [
            StepRow { id: id("other"), ..row.clone() },
            StepRow { life: 6, ..row.clone() },
            StepRow { number: 4, ..row.clone() },
            StepRow { name: "refund".to_owned(), ..row.clone() },
            StepRow { version: 3, ..row.clone() },
            StepRow { result: Bytes::from_static(b"[]"), ..row.clone() },
        ];
        for row in altered {
            assert_eq!(row.open(), Err(Unreadable::Altered));
        }
        let newer = StepRow { format: FORMAT + 1, ..row };
        assert!(matches!(newer.open(), Err(Unreadable::TooNew { .. })));
    }

    fn row(life: i64, number: u16) -> StepRow {
        let step = Step::new(number, name("s"), 1, Bytes::new()).unwrap();
        let (fence, owner, life) = (Fence::FIRST, Owner(1), Timestamp::from_micros(life));
        StepRow::seal(Timestamp::ZERO, &KeepStep { id: id("k"), fence, owner, life, step })
    }

    #[test]
    fn only_the_steps_of_one_life_count_and_none_of_them_is_missing() {
        let numbers = |rows| {
            let steps = open_life(Timestamp::from_micros(7), rows)?;
            Ok(steps.iter().map(|stored| stored.step.number()).collect::<Vec<_>>())
        };
        assert_eq!(numbers(Vec::new()), Ok(vec![]));
        assert_eq!(numbers(vec![row(7, 2), row(5, 3), row(7, 1)]), Ok(vec![1, 2]));
        let gap: Result<_, Unreadable> = numbers(vec![row(7, 1), row(7, 3)]);
        assert!(matches!(gap, Err(Unreadable::Impossible { column: "number", .. })));
    }
}
