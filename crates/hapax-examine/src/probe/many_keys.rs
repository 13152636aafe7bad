//! V22: a key comes again after many others.

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{
    Examiner, ProbeLog,
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{judge_duplicates, judge_later_retry},
    statistics::count_text,
};

pub(super) const PROBE: Probe = Probe {
    id: "V22",
    name: "many-keys",
    question: "Is a key still known after many others?",
    needs: &[],
    operations_max: 1,
    run: |examiner, log| run(examiner, log),
};

/// Most requests that are on their way at once.
const AT_ONCE_MAX: usize = 16;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let wanted = examiner.examination().bounds.keys_between;
        let Some(first) = examiner.succeed(log, "first", |request| request).await? else {
            return Ok(ProbeVerdict::inconclusive(NO_SUCCESS));
        };
        let early = examiner.ask_until_settled(log, "retry at once", &first.request).await;
        // They would leave no room for what the verdict is about.
        let others = ProbeLog::begin();
        let asked = stream::iter(0..wanted).map(|_| async {
            let request = examiner.fresh()?;
            let exchange = examiner.ask(&others, "other key", &request).await;
            Ok::<_, crate::ProbeInterruption>(u32::from(exchange.succeeded()))
        });
        let used: u32 = asked
            .buffer_unordered(AT_ONCE_MAX)
            .try_fold(0, |sum, one| async move { Ok(sum + one) })
            .await?;
        log.note(format!("{used} other keys were used"));
        log.reached(format!("{} other keys between", count_text(u64::from(used))));
        let late = examiner.ask_until_settled(log, "retry after the others", &first.request).await;
        let effects = examiner.effects(log, &first.request.marker).await?;
        let mut findings = ProbeFindings::default();
        let (Some(earlier), Some(later)) = (early.answer(), late.answer()) else {
            return Ok(ProbeVerdict::inconclusive("a retry was not answered"));
        };
        let mut defects = judge_duplicates(examiner, &[&first.exchange, &early, &late], effects);
        if defects.is_empty() {
            let since = format!("after {used} other keys");
            let (before, after) = ((&early, earlier), (&late, later));
            defects.extend(judge_later_retry(examiner, &first.answer, before, after, &since));
        }
        findings.seen(defects);
        if used < wanted {
            findings.unclear(format!("of {wanted} other keys only {used} had success"));
        }
        Ok(findings.verdict())
    })
}
