//! What is wrong with an API.

/// Something that was seen to be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// How bad it is.
    pub class: DefectClass,
    /// What happened, in a sentence that somebody who has never heard of the probe understands.
    pub sentence: String,
    /// What to do about it.
    pub advice: &'static str,
    /// The exchanges that show it, by their numbers in the probe.
    pub shown_by: Vec<u32>,
}

/// How bad a defect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefectClass {
    /// S0: an effect twice, an effect lost after success, or somebody else's answer.
    Safety,
    /// S1: a key that stays stuck.
    Liveness,
    /// S2: a contract that is broken, in a way that hides mistakes of clients.
    ContractHigh,
    /// S2: a contract that is broken.
    Contract,
    /// S3: what makes clients' work harder.
    Hygiene,
}

impl DefectClass {
    /// As reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Safety => "S0",
            Self::Liveness => "S1",
            Self::ContractHigh | Self::Contract => "S2",
            Self::Hygiene => "S3",
        }
    }
}
