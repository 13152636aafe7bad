//! What all of it comes to: a letter, how much was looked at, and what a program ends with.

use crate::{
    DefectClass, ExaminationRecord, OracleLevel, PROBES, ProbeRecord, ProbeVerdict,
    statistics::count_text,
};

/// Probes that must have come to a conclusion for an A.
const FOR_AN_A: [&str; 18] = [
    "V01", "V02", "V03", "V04", "V05", "V06", "V07", "V08", "V09", "V10", "V11", "V12", "V13",
    "V16", "V19", "V20", "V21", "V25",
];
/// And those for an A+: a server that is killed, keys that expire, several instances.
const FOR_AN_A_PLUS: [&str; 4] = ["V04", "V23", "V24", "V26"];
/// Probes that race duplicates against each other, and how many trials of them an A needs.
const RACES: [&str; 3] = ["V02", "V03", "V04"];
const RACE_TRIALS_MIN: u64 = 1_000;

/// A letter, from the worst to the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GradeLetter {
    /// An effect happened twice, was lost after success, or somebody heard somebody else's answer.
    F,
    /// A key stays stuck.
    D,
    /// A contract is broken, in a way that hides mistakes of clients.
    C,
    /// A contract is broken, or too little is known for an A.
    B,
    /// Nothing but what makes clients' work harder.
    AMinus,
    /// Nothing was found, and enough was looked at.
    A,
    /// The same with a server that was killed, with keys that expired, and over several instances.
    APlus,
}

/// What an examination comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grade {
    /// A letter.
    Given(GivenGrade),
    /// None.
    Withheld {
        /// Why not.
        why: String,
    },
}

/// A letter, and why it is no better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenGrade {
    /// Which.
    pub letter: GradeLetter,
    /// Whether nobody counted effects.
    pub effects_unproven: bool,
    /// Why it is no better.
    pub reasons: Vec<String>,
    /// What else would have to be known for an A, or for an A+ where it is an A.
    pub wanting: Vec<String>,
}

/// How many of all probes came to a conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    /// Those that did.
    pub conclusive: usize,
    /// All there are.
    pub total: usize,
}

/// What a program that examines ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExaminationExit {
    /// Nothing was found.
    Clean,
    /// Something was found.
    Findings,
    /// Nothing was found, but what was asked got no conclusion, or nothing could be graded.
    Inconclusive,
}

/// What a grade is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GradeBasis {
    /// How effects were counted.
    pub oracle: OracleLevel,
    /// Why nothing can be graded, if a control says so.
    pub refuted: Option<String>,
    /// The probes that were chosen.
    pub probes: Vec<ProbeStanding>,
}

/// Where one probe stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeStanding {
    /// Which.
    pub id: String,
    /// Where.
    pub standing: Standing,
}

/// What came of a probe, without its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The property was observed.
    Held {
        /// In so many trials.
        trials: u32,
    },
    /// It was not.
    Broken {
        /// In so many trials.
        trials: u32,
        /// The best letter that each of its defects allows.
        at_most: Vec<GradeLetter>,
    },
    /// It was run, and came to no conclusion.
    Open,
    /// It was not run: something that it needs was not given.
    NotRun,
}

impl GradeLetter {
    /// All, from the worst to the best.
    pub const ALL: [Self; 7] =
        [Self::F, Self::D, Self::C, Self::B, Self::AMinus, Self::A, Self::APlus];

    /// As reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F => "F",
            Self::D => "D",
            Self::C => "C",
            Self::B => "B",
            Self::AMinus => "A-",
            Self::A => "A",
            Self::APlus => "A+",
        }
    }

    /// The letter of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|letter| letter.name() == name)
    }

    /// What a defect is like that allows this letter and no better one.
    const fn allowed_by(self) -> &'static str {
        match self {
            Self::F => {
                "an effect that happened twice or was lost, or an answer that somebody else heard (S0)"
            }
            Self::D => "a key that stays stuck (S1)",
            Self::C => "a broken contract that hides mistakes of clients (S2)",
            Self::B => "a broken contract (S2)",
            Self::AMinus => "something that makes the work of clients harder (S3)",
            Self::A | Self::APlus => "nothing that counts",
        }
    }
}

impl DefectClass {
    /// The best letter that an API with such a defect can have.
    pub const fn at_most(self) -> GradeLetter {
        match self {
            Self::Safety => GradeLetter::F,
            Self::Liveness => GradeLetter::D,
            Self::ContractHigh => GradeLetter::C,
            Self::Contract => GradeLetter::B,
            Self::Hygiene => GradeLetter::AMinus,
        }
    }
}

impl ExaminationExit {
    /// As a process ends; 2 stands for wrong usage, which is known before anything is examined.
    pub const fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Inconclusive => 3,
        }
    }
}

impl ExaminationRecord {
    /// What its grade is made of.
    pub fn basis(&self) -> GradeBasis {
        GradeBasis {
            oracle: self.oracle,
            refuted: self
                .controls
                .iter()
                .find_map(|control| control.refutation())
                .map(String::from),
            probes: self.probes.iter().map(ProbeRecord::standing).collect(),
        }
    }

    /// The letter.
    pub fn grade(&self) -> Grade {
        self.basis().grade()
    }

    /// How many probes came to a conclusion.
    pub fn coverage(&self) -> Coverage {
        self.basis().coverage()
    }

    /// What a program that ran it ends with.
    pub fn exit(&self) -> ExaminationExit {
        self.basis().exit()
    }
}

impl ProbeRecord {
    /// Where it stands, without its evidence.
    pub fn standing(&self) -> ProbeStanding {
        let standing = match &self.verdict {
            ProbeVerdict::Pass { trials } => Standing::Held { trials: *trials },
            ProbeVerdict::Fail { trials, defects } => Standing::Broken {
                trials: *trials,
                at_most: defects.iter().map(|defect| defect.class.at_most()).collect(),
            },
            ProbeVerdict::Inconclusive { .. } if self.was_run => Standing::Open,
            ProbeVerdict::Inconclusive { .. } => Standing::NotRun,
        };
        ProbeStanding { id: self.probe.id.to_owned(), standing }
    }
}

impl GradeBasis {
    /// The letter: no better than the worst defect allows, and than what is known supports.
    pub fn grade(&self) -> Grade {
        if let Some(why) = &self.refuted {
            return Grade::Withheld { why: why.clone() };
        }
        if self.coverage().conclusive == 0 {
            return Grade::Withheld { why: "no probe came to a conclusion".to_owned() };
        }
        let for_an_a = self.wanting_for_an_a();
        let for_an_a_plus = self.inconclusive(&FOR_AN_A_PLUS, "for an A+");
        let supported = match (for_an_a.is_empty(), for_an_a_plus.is_none()) {
            (false, _) => GradeLetter::B,
            (true, false) => GradeLetter::A,
            (true, true) => GradeLetter::APlus,
        };
        let letter = self.worst().map_or(supported, |worst| worst.min(supported));
        let mut reasons = self.reasons();
        let effects_unproven = self.oracle < OracleLevel::Counted;
        if effects_unproven {
            let level = self.oracle.name();
            reasons.push(format!("at most B: effects unproven, nobody counted them ({level})"));
        }
        if letter == GradeLetter::B && !for_an_a.is_empty() {
            reasons.push("at most B: too little is known for an A".to_owned());
        }
        let wanting =
            if letter == GradeLetter::A { for_an_a_plus.into_iter().collect() } else { for_an_a };
        Grade::Given(GivenGrade { letter, effects_unproven, reasons, wanting })
    }

    /// How many probes came to a conclusion, of all there are.
    pub fn coverage(&self) -> Coverage {
        let conclusive = self.probes.iter().filter(|probe| probe.standing.is_conclusive()).count();
        Coverage { conclusive, total: PROBES.len() }
    }

    /// What a program ends with.
    pub fn exit(&self) -> ExaminationExit {
        let stands =
            |is: fn(&Standing) -> bool| self.probes.iter().any(|probe| is(&probe.standing));
        if self.refuted.is_some() {
            ExaminationExit::Inconclusive
        } else if stands(|standing| matches!(standing, Standing::Broken { .. })) {
            ExaminationExit::Findings
        } else if self.coverage().conclusive == 0 || stands(|standing| *standing == Standing::Open)
        {
            ExaminationExit::Inconclusive
        } else {
            ExaminationExit::Clean
        }
    }

    /// The best letter that the worst defect allows.
    fn worst(&self) -> Option<GradeLetter> {
        self.probes.iter().filter_map(|probe| probe.standing.at_most()).min()
    }

    /// Which probes found what, the worst first.
    fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        for letter in GradeLetter::ALL {
            let found = self.probes.iter().filter(|probe| probe.standing.allows_at_most(letter));
            let ids: Vec<_> = found.map(|probe| probe.id.as_str()).collect();
            if !ids.is_empty() {
                let (name, what) = (letter.name(), letter.allowed_by());
                reasons.push(format!("at most {name}: {} found {what}", ids.join(", ")));
            }
        }
        reasons
    }

    fn wanting_for_an_a(&self) -> Vec<String> {
        let mut wanting: Vec<_> = self.inconclusive(&FOR_AN_A, "for an A").into_iter().collect();
        if self.oracle < OracleLevel::Counted {
            wanting.push("for an A: somebody must count effects (`--count`)".to_owned());
        }
        let races = self.probes.iter().filter(|probe| RACES.contains(&probe.id.as_str()));
        let trials: u64 = races.map(|probe| u64::from(probe.standing.trials())).sum();
        if trials < RACE_TRIALS_MIN {
            let (least, trials) = (count_text(RACE_TRIALS_MIN), count_text(trials));
            wanting.push(format!(
                "for an A: {least} trials of races, of which there were {trials} (`--race-trials`)"
            ));
        }
        wanting
    }

    /// Which of these came to no conclusion.
    fn inconclusive(&self, wanted: &[&str], purpose: &str) -> Option<String> {
        let concluded = |id: &str| {
            self.probes.iter().any(|probe| probe.id == id && probe.standing.is_conclusive())
        };
        let missing: Vec<_> = wanted.iter().copied().filter(|id| !concluded(id)).collect();
        let these = if missing.len() == 1 { "this probe" } else { "these probes" };
        let ids = missing.join(", ");
        (!missing.is_empty())
            .then(|| format!("{purpose}: {these} must come to a conclusion: {ids}"))
    }
}

impl Standing {
    const fn is_conclusive(&self) -> bool {
        match self {
            Self::Held { .. } | Self::Broken { .. } => true,
            Self::Open | Self::NotRun => false,
        }
    }

    const fn trials(&self) -> u32 {
        match self {
            Self::Held { trials } | Self::Broken { trials, .. } => *trials,
            Self::Open | Self::NotRun => 0,
        }
    }

    /// The best letter that its defects allow; what broke without saying how is a broken contract.
    fn at_most(&self) -> Option<GradeLetter> {
        match self {
            Self::Broken { at_most, .. } => {
                Some(at_most.iter().copied().min().unwrap_or(GradeLetter::B))
            }
            Self::Held { .. } | Self::Open | Self::NotRun => None,
        }
    }

    fn allows_at_most(&self, letter: GradeLetter) -> bool {
        match self {
            Self::Broken { at_most, .. } if at_most.is_empty() => letter == GradeLetter::B,
            Self::Broken { at_most, .. } => at_most.contains(&letter),
            Self::Held { .. } | Self::Open | Self::NotRun => false,
        }
    }
}
