//! What the store would hold, had observed requests been protected: decided by the same machine.

use std::collections::{HashMap, VecDeque};

use hapax_core::{
    Arrival, Attempt, AttemptEnd, Decision, Fingerprint, InvalidName, Key, Operation, OperationId,
    Owner, Policy, Record, Recovery, RunMode, Scope, State, Tenant, Timestamp, apply, decide,
    settle, store::Claim,
};

use super::verdict::ObservedVerdict;

/// Records in memory, without what anybody could read in them: each goes by the digest of its operation,
/// and holds a fingerprint and a status.
#[derive(Debug)]
pub(super) struct ShadowRecords {
    records: HashMap<OperationId, Record>,
    /// Which records there are, and since when, the oldest first.
    order: VecDeque<(OperationId, Timestamp)>,
    records_max: usize,
    forgotten: u64,
    /// What every record is called, beside its digest.
    names: Option<(Tenant, Scope)>,
}

/// An arrival that would have run: what its end is told with.
#[derive(Debug)]
pub(super) struct ShadowAttempt {
    attempt: Attempt,
    policy: Policy,
    /// What was to be done about the owner it followed, if it did.
    follows: Option<Recovery>,
}

impl ShadowRecords {
    pub(super) fn new(records_max: usize) -> Self {
        let names =
            || Ok::<_, InvalidName>((Tenant::parse("observed")?, Scope::parse("observed")?));
        let (records, order) = (HashMap::new(), VecDeque::new());
        Self { records, order, records_max, forgotten: 0, names: names().ok() }
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// How many were forgotten before their time.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// What an arrival would have met, and the attempt it would have been.
    pub(super) fn arrive(
        &mut self,
        now: Timestamp,
        id: OperationId,
        fingerprint: Fingerprint,
        policy: &Policy,
    ) -> (ObservedVerdict, Option<ShadowAttempt>) {
        let Some(operation) = self.operation(id) else { return (ObservedVerdict::Executed, None) };
        let (owner, mode) = (Owner::draw(), RunMode::Run { request: None });
        let arrival = Arrival { operation, fingerprint, owner, mode };
        let found = self.records.get(&arrival.operation.id());
        let verdict = match decide(now, &arrival, found, policy) {
            Decision::Execute(claim) => {
                return (ObservedVerdict::Executed, self.claim(now, &claim, policy, None));
            }
            Decision::TakeOver { claim, recovery, .. } => {
                let attempt = self.claim(now, &claim, policy, Some(recovery));
                return (ObservedVerdict::InDoubt, attempt);
            }
            Decision::GiveUp | Decision::InDoubt { .. } => ObservedVerdict::InDoubt,
            Decision::Busy { .. } => ObservedVerdict::Busy,
            Decision::Replay => match found.map(|record| &record.state) {
                Some(State::Failed { .. }) => ObservedVerdict::ReplayedFailure,
                Some(
                    State::Completed { .. }
                    | State::Pending { .. }
                    | State::Running { .. }
                    | State::InDoubt { .. }
                    | State::Released
                    | State::Buried,
                )
                | None => ObservedVerdict::Replayed,
            },
            Decision::Mismatch(_) => ObservedVerdict::Mismatch,
            Decision::Gone { .. } => ObservedVerdict::Gone,
        };
        (verdict, None)
    }

    /// What became of an attempt.
    pub(super) fn settle(&mut self, now: Timestamp, attempt: &ShadowAttempt, end: AttemptEnd) {
        let ShadowAttempt { attempt, policy, follows } = attempt;
        let end = match follows {
            Some(recovery) => end.following(*recovery),
            None => end,
        };
        let write = settle(attempt, end, policy);
        let settled = apply::settle(now, self.records.get(&attempt.id), &write);
        if let (Some(settled), Some(record)) = (settled, self.records.get_mut(&attempt.id)) {
            *record = settled;
        }
    }

    /// The operation with nothing but its digest for a key.
    fn operation(&self, id: OperationId) -> Option<Operation> {
        let (tenant, scope) = self.names.clone()?;
        Some(Operation::new(tenant, scope, Key::parse(id.to_string()).ok()?))
    }

    fn claim(
        &mut self,
        now: Timestamp,
        claim: &Claim,
        policy: &Policy,
        follows: Option<Recovery>,
    ) -> Option<ShadowAttempt> {
        let id = claim.operation.id();
        let claimed = apply::claim(now, self.records.get(&id), claim)?;
        if claimed.created_at == now {
            self.order.push_back((id, now));
        }
        self.records.insert(id, claimed);
        self.forget_the_oldest(now);
        let attempt = Attempt { id, fence: claim.fence, owner: claim.owner };
        Some(ShadowAttempt { attempt, policy: *policy, follows })
    }

    /// Makes room for what is new. What is past its time by then was not forgotten too early.
    fn forget_the_oldest(&mut self, now: Timestamp) {
        while self.order.len() > self.records_max {
            let Some((id, since)) = self.order.pop_front() else { return };
            // Whoever began a new life has another place further behind.
            if self.records.get(&id).is_some_and(|record| record.created_at == since) {
                let is_over = self.records.remove(&id).is_some_and(|gone| gone.is_expired(now));
                self.forgotten += u64::from(!is_over);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hapax_core::{AnswerMeaning, AttemptAnswer, Outcome, RequestParts, Salt};

    use super::*;

    fn id(number: u8) -> OperationId {
        OperationId::from_bytes([number; 16])
    }

    fn fingerprint(body: &[u8]) -> Fingerprint {
        let key = Salt::from_bytes([7; 32]).tenant_key(&Tenant::parse("a").unwrap());
        key.fingerprint(&RequestParts { body, ..RequestParts::default() })
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO.plus(Duration::from_secs(seconds))
    }

    fn answered(status: u16, meaning: AnswerMeaning) -> AttemptEnd {
        AttemptEnd::Answered(AttemptAnswer { outcome: Outcome::bare(status), meaning })
    }

    /// What arrivals come to after a first one that ended so, an hour later.
    fn after(end: AttemptEnd, recovery: Recovery) -> ObservedVerdict {
        let (mut records, policy) =
            (ShadowRecords::new(10), Policy::default().recovering(recovery));
        let (verdict, attempt) = records.arrive(at(0), id(1), fingerprint(b"100"), &policy);
        assert_eq!(verdict, ObservedVerdict::Executed);
        let (busy, second) = records.arrive(at(1), id(1), fingerprint(b"100"), &policy);
        assert!(busy == ObservedVerdict::Busy && second.is_none());
        let (mismatch, _) = records.arrive(at(1), id(1), fingerprint(b"999"), &policy);
        assert_eq!(mismatch, ObservedVerdict::Mismatch);
        records.settle(at(2), &attempt.unwrap(), end);
        records.arrive(at(3600), id(1), fingerprint(b"100"), &policy).0
    }

    #[test]
    fn a_repeated_request_comes_to_what_the_machine_says() {
        let (hold, resend) = (Recovery::Hold, Recovery::Resend);
        for (end, recovery, verdict) in [
            (answered(201, AnswerMeaning::Completed), hold, ObservedVerdict::Replayed),
            (answered(422, AnswerMeaning::Failed), hold, ObservedVerdict::ReplayedFailure),
            (answered(503, AnswerMeaning::NotDone), hold, ObservedVerdict::Executed),
            (AttemptEnd::NothingSent, hold, ObservedVerdict::Executed),
            (AttemptEnd::Unanswered, hold, ObservedVerdict::InDoubt),
            (AttemptEnd::Unanswered, resend, ObservedVerdict::InDoubt),
        ] {
            assert_eq!(after(end.clone(), recovery), verdict, "{end:?} under {recovery:?}");
        }
    }

    #[test]
    fn a_key_is_remembered_as_long_as_its_retention_and_no_longer() {
        let (mut records, policy) = (ShadowRecords::new(10), Policy::default());
        let (_, attempt) = records.arrive(at(0), id(1), fingerprint(b"100"), &policy);
        records.settle(at(1), &attempt.unwrap(), answered(201, AnswerMeaning::Completed));
        let day = 24 * 60 * 60;
        let mut later =
            |seconds| records.arrive(at(seconds), id(1), fingerprint(b"100"), &policy).0;
        assert_eq!(later(day - 1), ObservedVerdict::Replayed);
        assert_eq!(later(day), ObservedVerdict::Executed);
    }

    #[test]
    fn the_oldest_is_forgotten_where_there_is_no_room_and_counted() {
        let (mut records, policy) = (ShadowRecords::new(2), Policy::default());
        for number in 1..=3 {
            records.arrive(at(number.into()), id(number), fingerprint(b"100"), &policy);
        }
        assert_eq!((records.len(), records.forgotten()), (2, 1));
        let (again, _) = records.arrive(at(4), id(3), fingerprint(b"100"), &policy);
        assert_eq!(again, ObservedVerdict::Busy, "the newest are known");
        let (anew, _) = records.arrive(at(5), id(1), fingerprint(b"100"), &policy);
        assert_eq!(anew, ObservedVerdict::Executed, "the oldest is new again");
        assert_eq!((records.len(), records.forgotten()), (2, 2));
    }
}
