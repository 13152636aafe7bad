//! V16: a retry comes while the first runs, and another one afterwards.

use std::time::Duration;

use futures_util::future::join;

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{
    Defect, Examiner, ProbeInterruption, ProbeLog,
    overlap::{TrialFindings, is_overlap, judge_overlapping, judge_settled},
    recovery::Slowable,
    wire::{OpenRequest, Receiving},
};

pub(super) const PROBE: Probe = Probe {
    id: "V16",
    name: "retry-while-running",
    question: "Does a retry wait or hear 409 while the first runs, and the answer afterwards?",
    needs: &[],
    operations_max: 16,
    run: |examiner, log| run(examiner, log),
};

/// When the second comes, as parts of the time that an answer takes: leases may end while the first still runs.
const MOMENTS: [f64; 4] = [0.1, 0.5, 0.65, 0.8];
/// How wide they are scattered around that, by chance.
const AROUND: f64 = 0.06;
/// The first moment that is late.
const LATE: f64 = 0.5;
/// How often a moment is tried at which the first was done before the second came.
const ATTEMPTS_MAX: u32 = 4;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut server = Slowable::new(examiner);
        let tried = retry_at_all(examiner, log, &mut server).await;
        server.restore().await?;
        tried
    })
}

async fn retry_at_all(
    examiner: &Examiner,
    log: &ProbeLog,
    server: &mut Slowable<'_>,
) -> Result<ProbeVerdict, ProbeInterruption> {
    let mut findings = TrialFindings::default();
    let mut chance = examiner.chance(PROBE.id);
    let (mut early, mut late) = (0, 0);
    for moment in MOMENTS {
        let part = moment + AROUND * (chance.f64() - 0.5);
        for attempt in 0..ATTEMPTS_MAX {
            if attempt == ATTEMPTS_MAX / 2 {
                server.slow_down(log).await?;
            }
            let delay = server.latency().mul_f64(part);
            if let Some(defects) = retry(examiner, log, delay).await? {
                findings.add(defects);
                *(if moment < LATE { &mut early } else { &mut late }) += 1;
                break;
            }
        }
        if findings.is_decided() {
            return Ok(findings.verdict(""));
        }
    }
    if early == 0 || late == 0 {
        findings = findings.unless_sound();
    }
    Ok(findings.verdict(&format!(
        "the first was done before the second came: {} would help",
        server.wanted()
    )))
}

/// The second comes so long after the first; nothing if the first was done by then.
async fn retry(
    examiner: &Examiner,
    log: &ProbeLog,
    delay: Duration,
) -> Result<Option<Vec<Defect>>, ProbeInterruption> {
    let request = examiner.fresh()?;
    let addressed = examiner.addressed(0, &request);
    let open = |label| examiner.wire().open(log, label, addressed, Receiving::Ordinary);
    let (Ok(mut first), Ok(mut second)) = (open("first").await, open("second").await) else {
        return Ok(None);
    };
    OpenRequest::drained(std::slice::from_ref(&second)).await;
    first.release(log);
    let later = async {
        tokio::time::sleep(delay).await;
        second.release(log);
        second.read(log, examiner.patience()).await
    };
    let (first, second) = join(first.read(log, examiner.patience()), later).await;
    let third = examiner.ask_until_settled(log, "afterwards", &request).await;
    let effects = examiner.effects(log, &request.marker).await?;
    let mut defects = judge_overlapping(examiner, &[&first, &second, &third], effects);
    defects.extend(judge_settled(examiner, "a retry came while it ran", &third));
    let is_told = first.succeeded() && is_overlap(&[&first, &second]);
    Ok((is_told || !defects.is_empty()).then_some(defects))
}
