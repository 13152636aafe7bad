//! What all attempts of one operation add up to.

use std::fmt;

use super::attempt_result::{AttemptResult, AttemptVerdict, Repeat};

/// What is known about one operation after all its attempts so far.
///
/// An attempt that may have had its effect makes the operation doubtful until somebody who looked at
/// its key says what came of it.
///
/// ```
/// use hapax_core::retry::{AttemptHistory, AttemptResult, Conclusion, Evidence};
///
/// let mut history = AttemptHistory::new();
/// history.note(AttemptResult::Unanswered, Evidence::default());
/// assert_eq!(history.conclusion(), Conclusion::Unknown);
/// history.note(AttemptResult::Success { code: 1 }, Evidence::default());
/// assert_eq!(history.conclusion(), Conclusion::Done);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct AttemptHistory {
    reads_only: bool,
    doubt: bool,
    /// The code of a success that did not arrive whole.
    cut: Option<u16>,
    word: Word,
}

/// What an operation came to.
///
/// ```
/// use hapax_core::retry::Conclusion;
///
/// assert_eq!(Conclusion::GaveUp.to_string(), "gave up");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conclusion {
    /// It was answered with a success.
    Done,
    /// It was answered with a no, and did not happen.
    Refused,
    /// It may have happened, and nobody said: ask again with the same key.
    Unknown,
    /// It did not happen: nothing was sent, or every answer said that nothing ran.
    GaveUp,
}

/// What an attempt shows besides its [`AttemptResult`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Evidence {
    /// The code of a final success that began and broke off.
    pub cut: Option<u16>,
    /// Whether whoever answered had looked at the key.
    pub knows_key: bool,
}

/// The last word that was heard, as far as it can be believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Word {
    #[default]
    None,
    Yes,
    No,
}

impl AttemptHistory {
    /// An operation of which nothing was sent yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// An operation of which earlier attempts may have happened: somebody began it and is gone.
    pub fn taken_over() -> Self {
        Self { doubt: true, ..Self::default() }
    }

    /// A request that only reads: no attempt has an effect, so nothing about it is doubtful.
    pub fn reading() -> Self {
        Self { reads_only: true, ..Self::default() }
    }

    /// Takes in what came of one more attempt.
    pub fn note(&mut self, result: AttemptResult, evidence: Evidence) {
        if self.word == Word::Yes {
            return;
        }
        self.word = match (result, result.verdict(Repeat::Harmless)) {
            (AttemptResult::Success { code }, _) if self.agrees(code) => Word::Yes,
            (AttemptResult::NotRetained, _)
            | (_, AttemptVerdict::Success | AttemptVerdict::Unknown) => self.doubted(),
            (AttemptResult::KeyReused, _) => self.refused(true),
            // What came of the key is forgotten, so it cannot settle a doubt.
            (AttemptResult::Gone, _) => self.refused(false),
            (_, AttemptVerdict::Never) => self.refused(evidence.knows_key),
            (_, AttemptVerdict::Retry | AttemptVerdict::Wait) if result.leaves_doubt() => {
                self.doubted()
            }
            (_, AttemptVerdict::Retry | AttemptVerdict::Wait) => Word::None,
        };
        self.cut = self.cut.or(evidence.cut);
    }

    /// What it comes to if nothing else is tried.
    pub fn conclusion(&self) -> Conclusion {
        match (self.word, self.doubt) {
            (Word::Yes, _) => Conclusion::Done,
            (Word::No, _) => Conclusion::Refused,
            (Word::None, true) => Conclusion::Unknown,
            (Word::None, false) => Conclusion::GaveUp,
        }
    }

    /// A server that began one success and sends another contradicts itself.
    fn agrees(&self, code: u16) -> bool {
        self.cut.is_none_or(|begun| begun == code)
    }

    /// A no is believed if there was no doubt, or if it answers the doubt. After half a yes it is
    /// not: the server contradicts itself.
    fn refused(&mut self, knows_key: bool) -> Word {
        if self.doubt && !knows_key || self.cut.is_some() {
            return self.doubted();
        }
        self.doubt = false;
        Word::No
    }

    fn doubted(&mut self) -> Word {
        self.doubt |= !self.reads_only;
        Word::None
    }
}

impl Conclusion {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
            Self::GaveUp => "gave up",
        }
    }
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
