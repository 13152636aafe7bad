use hapax_core::{Deed, Noted, OperationId, Record, State, Timestamp};

/// Everything known about an operation at one moment.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Its id.
    pub id: OperationId,
    /// The store's clock when it was read.
    pub now: Timestamp,
    /// What is stored; `None` if nothing is, or nothing any more.
    pub record: Option<Record>,
    /// The latest of what people did to it, oldest first.
    pub notes: Vec<Noted>,
    /// The latest of what Hapax noted of what happened to it apart from the usual, oldest first. One may be missing.
    pub history: Vec<Noted>,
}

/// Something that happened to an operation, or will.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineEntry {
    /// When, by the store's clock.
    pub at: Timestamp,
    /// What, in words.
    pub what: String,
    /// Who tells of it.
    pub kind: MomentKind,
}

/// Who tells of a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MomentKind {
    /// The record as it is now.
    Record,
    /// Hapax, which noted it when it happened.
    History,
    /// The note of a person.
    Person,
}

impl MomentKind {
    /// The word used in JSON and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::History => "history",
            Self::Person => "person",
        }
    }
}

impl Shown {
    /// Whether anything is known about it at all.
    pub fn is_known(&self) -> bool {
        self.record.is_some() || !self.notes.is_empty() || !self.history.is_empty()
    }

    /// What happened to it and what is about to, in order of time.
    ///
    /// A record keeps its beginning and its latest change. What happened in between is told from notes, as far as they were
    /// kept: of takeovers, probes, doubts, sendings once more and keys that were given back.
    pub fn timeline(&self) -> Vec<TimelineEntry> {
        let people = self.notes.iter().map(|noted| TimelineEntry {
            at: noted.at,
            what: note(noted),
            kind: MomentKind::Person,
        });
        let history = self.history.iter().filter(|noted| !self.is_told_by_record(noted));
        let history = history.map(|noted| TimelineEntry {
            at: noted.at,
            what: noted.note.reason.why().to_owned(),
            kind: MomentKind::History,
        });
        let mut moments: Vec<_> = self
            .record
            .iter()
            .flat_map(|record| of_record(record, self.now))
            .chain(history)
            .chain(people)
            .collect();
        moments.sort_by_key(|moment| moment.at);
        moments
    }

    /// Whether the record still says the same, with the very instant.
    fn is_told_by_record(&self, noted: &Noted) -> bool {
        let Some(record) = &self.record else { return false };
        let is_present = matches!(
            (noted.note.deed, &record.state),
            (Deed::LeftInDoubt, State::InDoubt { .. }) | (Deed::GaveBack, State::Released)
        );
        is_present && noted.note.fence == record.fence
    }
}

fn of_record(record: &Record, now: Timestamp) -> Vec<TimelineEntry> {
    let attempt = record.fence.get();
    let entered = match &record.state {
        State::Pending { .. } => "accepted for later".to_owned(),
        State::Running { .. } => {
            format!("attempt {attempt} (owner {:016x}) began", record.owner.0)
        }
        State::Completed { outcome } => {
            format!("attempt {attempt} completed with status {}", outcome.status())
        }
        State::Failed { outcome } => {
            format!("attempt {attempt} failed for good with status {}", outcome.status())
        }
        State::InDoubt { doubt, .. } => {
            let owner = record.owner.0;
            format!("attempt {attempt} (owner {owner:016x}) was left in doubt: {}", doubt.as_str())
        }
        State::Released => format!("attempt {attempt} was given back"),
        State::Buried => "its outcome was forgotten; a tombstone is left".to_owned(),
    };
    let kind = MomentKind::Record;
    let moment = |at, what: &str| TimelineEntry { at, what: what.to_owned(), kind };
    let mut moments = vec![
        moment(record.created_at, "the key was first claimed"),
        TimelineEntry { at: record.changed_at, what: entered, kind },
    ];
    match &record.state {
        State::Running { lease_until, .. } if *lease_until <= now => {
            moments.push(moment(*lease_until, "its owner's lease ended"));
        }
        State::Running { lease_until, .. } => {
            moments.push(moment(*lease_until, "its owner's lease ends, unless it is renewed"));
        }
        State::Pending { pick_up_by, .. } => {
            moments.push(moment(*pick_up_by, "any worker may pick it up from here on"));
        }
        State::Completed { .. } | State::Failed { .. } => {
            moments.push(moment(record.expires_at, "its outcome expires"));
        }
        // Nothing in doubt expires; the others have nothing that could.
        State::InDoubt { .. } | State::Released | State::Buried => {}
    }
    moments
}

fn note(noted: &Noted) -> String {
    let note = &noted.note;
    let reason = &note.reason;
    let (who, why) = (reason.who(), reason.why());
    let (deed, phase, fence) = (note.deed.as_str(), note.phase.as_str(), note.fence.get());
    format!("{who}: {deed} of attempt {fence} {phase} ({why})")
}
