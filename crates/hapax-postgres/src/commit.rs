//! A batch as one statement: what it writes, it writes in one commit.
//!
//! Settles, renewals and takeovers are updates that name what they expect; first claims are
//! inserts that give way. What was not written is then read by a second statement, with a snapshot
//! of its own: in one statement, a claim that lost a race would find nothing at all.

use std::{collections::HashMap, sync::LazyLock, time::Duration};

use hapax_core::{
    OperationId, StoreError, Timestamp,
    codec::{self, Sealed},
    store::{
        Batch, By, Claim, Claimed, Committed, Entry, Over, Renew, Renewed, Settle, Settled,
        Settlement,
    },
    time::micros,
};
use tokio_postgres::types::ToSql;

use crate::{
    connection::Wire,
    error::{Failure, after, before},
    row::{self, Found, Id, column},
    store::Shared,
};

/// Times a batch is sent again because others were in its way.
const ATTEMPTS_MAX: u32 = 4;
/// Longest pause before that.
const PAUSE_MAX: Duration = Duration::from_millis(40);
/// Longest span written, so that no sum of instants and spans overflows.
const SPAN_MAX: i64 = i64::MAX / 8;

const PREPARE_BUCKETS: &str = include_str!("sql/prepare_buckets.sql");

/// Performs the batch and answers item by item.
pub(crate) async fn commit(shared: &Shared, batch: &Batch) -> Committed {
    if batch.is_empty() {
        return Committed::default();
    }
    let lane = shared.lane();
    let wire = match lane.wire().await {
        Ok(wire) => wire,
        Err(failure) => return batch.all_failed(&failure.into()),
    };
    match write(shared, &wire, batch).await {
        Ok(written) => answer(&wire, batch, &written).await,
        Err(failure) => batch.all_failed(&failure.into()),
    }
}

/// The instant each item was written with; those that were not are missing.
type Written = HashMap<OperationId, Timestamp>;

async fn write(shared: &Shared, wire: &Wire, batch: &Batch) -> Result<Written, Failure> {
    let sealed =
        batch.settles.iter().map(|settle| Some(codec::seal(settle.id, settle.to.outcome()?)));
    let sealed: Vec<Option<Sealed>> = sealed.collect();
    let parts = Parts::new(batch, &sealed);
    let params: Vec<&(dyn ToSql + Sync)> = parts.params();
    let mut attempt = 1;
    loop {
        shared.faults.at("commit.send").map_err(before)?;
        let warnings = wire.warnings();
        let rows = wire.query(parts.text(), &params).await;
        shared.faults.at("commit.answer").map_err(after)?;
        let failure = match rows {
            Ok(_) if wire.warnings() != warnings => {
                return Err(Failure::unanswered("the server warned while it committed"));
            }
            Ok(rows) => return rows.iter().map(|row| note(shared, row)).collect(),
            Err(failure) => failure,
        };
        if attempt == ATTEMPTS_MAX {
            return Err(failure);
        }
        attempt += 1;
        if failure.is_missing_bucket() {
            prepare_buckets(wire, batch).await?;
        } else if failure.is_passing() {
            tokio::time::sleep(PAUSE_MAX.mul_f64(fastrand::f64())).await;
        } else {
            return Err(failure);
        }
    }
}

fn note(shared: &Shared, row: &tokio_postgres::Row) -> Result<(OperationId, Timestamp), Failure> {
    let Id(id) = column(row, 0)?;
    if column(row, 2)? {
        shared.watchers.settled(id);
    }
    Ok((id, Timestamp::from_micros(column(row, 1)?)))
}

async fn prepare_buckets(wire: &Wire, batch: &Batch) -> Result<(), Failure> {
    let ids: Vec<_> = batch.settles.iter().map(|settle| Id(settle.id)).collect();
    let keeps: Vec<_> = batch.settles.iter().map(|settle| span(settle.keep)).collect();
    wire.query(PREPARE_BUCKETS, &[&ids, &keeps]).await.map_err(Failure::before_sending)?;
    Ok(())
}

/// Says for each item whether it was written, and reads what stood in the way of the others.
async fn answer(wire: &Wire, batch: &Batch, written: &Written) -> Committed {
    let ids = batch.settles.iter().map(|settle| settle.id);
    let ids = ids.chain(batch.renews.iter().map(|renew| renew.id));
    let ids = ids.chain(batch.claims.iter().map(|claim| claim.operation.id()));
    let missed: Vec<_> = ids.filter(|id| !written.contains_key(id)).collect();
    let mut found = HashMap::new();
    let mut unread = StoreError::unavailable("the statement did not answer for this item");
    if !missed.is_empty() {
        match row::read(wire, &missed).await {
            Ok(rows) => found = missed.into_iter().zip(rows).collect(),
            Err(failure) => unread = failure.before_sending().into(),
        }
    }
    let mut missed = |id| found.remove(&id).ok_or_else(|| unread.clone());
    let mut lost = |id| missed(id).and_then(|found: Found| found.record.map(|_| ()));
    Committed {
        settles: (batch.settles.iter())
            .map(|settle| match written.get(&settle.id) {
                Some(now) => Ok(Settled::Done { now: *now }),
                None => lost(settle.id).map(|()| Settled::Lost),
            })
            .collect(),
        renews: (batch.renews.iter())
            .map(|renew| match written.get(&renew.id) {
                Some(now) => Ok(Renewed::Done { now: *now }),
                None => lost(renew.id).map(|()| Renewed::Lost),
            })
            .collect(),
        claims: (batch.claims.iter().map(|claim| claim.operation.id()))
            .map(|id| match written.get(&id) {
                Some(now) => Ok(Claimed::Won { now: *now }),
                None => {
                    let Found { now, record } = missed(id)?;
                    Ok(Claimed::Found { now, record: record?.map(Box::new) })
                }
            })
            .collect(),
    }
}

/// The columns of a batch, part by part, each sorted by id: two batches that meet wait for each
/// other and do not lock up.
struct Parts<'a> {
    mask: usize,
    columns: Vec<Column<'a>>,
}

type Column<'a> = Box<dyn ToSql + Sync + Send + 'a>;

impl<'a> Parts<'a> {
    fn new(batch: &'a Batch, sealed: &'a [Option<Sealed>]) -> Self {
        let mut settles: Vec<_> = batch.settles.iter().zip(sealed).collect();
        settles.sort_unstable_by_key(|(settle, _)| settle.id);
        let mut renews: Vec<_> = batch.renews.iter().collect();
        renews.sort_unstable_by_key(|renew| renew.id);
        let mut claims: Vec<_> = batch.claims.iter().collect();
        claims.sort_unstable_by_key(|claim| claim.operation.id());
        let (claims, takeovers): (Vec<_>, Vec<_>) =
            claims.into_iter().partition(|claim| claim.over == Over::Nothing);

        let mut parts = Self { mask: 0, columns: Vec::new() };
        parts.add(SETTLE, !settles.is_empty(), || settle_columns(&settles));
        parts.add(RENEW, !renews.is_empty(), || renew_columns(&renews));
        parts.add(TAKE_OVER, !takeovers.is_empty(), || take_over_columns(&takeovers));
        parts.add(CLAIM, !claims.is_empty(), || claim_columns(&claims));
        parts
    }

    fn add(&mut self, part: usize, wanted: bool, columns: impl FnOnce() -> Vec<Column<'a>>) {
        if wanted {
            self.mask |= 1 << part;
            self.columns.extend(columns());
        }
    }

    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.columns.iter().map(|column| &**column as &(dyn ToSql + Sync)).collect()
    }

    fn text(&self) -> &'static str {
        &TEXTS[self.mask]
    }
}

fn settle_columns<'a>(settles: &[(&'a Settle, &'a Option<Sealed>)]) -> Vec<Column<'a>> {
    let stamps: Vec<_> = settles
        .iter()
        .map(|(settle, _)| match settle.by {
            By::Owner { fence, owner } => (fence.get(), owner.0, None, None),
            By::Onlooker(stamp) => {
                let (tag, until) = (stamp.tag as i16, stamp.until.as_micros());
                (stamp.fence.get(), stamp.owner.0, Some(tag), Some(until))
            }
        })
        .collect();
    let outcomes: Vec<_> = settles.iter().map(|(_, sealed)| sealed.as_ref()).collect();
    vec![
        list(settles, |(settle, _)| Id(settle.id)),
        list(&stamps, |stamp| stamp.0),
        list(&stamps, |stamp| stamp.1),
        list(&stamps, |stamp| stamp.2),
        list(&stamps, |stamp| stamp.3),
        list(settles, |(settle, _)| settle.to.tag() as i16),
        list(settles, |(settle, _)| match settle.to {
            Settlement::InDoubt(doubt) => doubt as i16,
            Settlement::Completed(_) | Settlement::Failed(_) | Settlement::Released => 0,
        }),
        list(settles, |(settle, _)| span(settle.keep)),
        list(&outcomes, |sealed| sealed.map(|sealed| &*sealed.head)),
        list(&outcomes, |sealed| sealed.map(|sealed| &*sealed.body)),
        list(&outcomes, |sealed| sealed.map(|sealed| &sealed.digest[..])),
    ]
}

fn renew_columns<'a>(renews: &[&'a Renew]) -> Vec<Column<'a>> {
    vec![
        list(renews, |renew| Id(renew.id)),
        list(renews, |renew| renew.fence.get()),
        list(renews, |renew| renew.owner.0),
        list(renews, |renew| span(renew.lease)),
    ]
}

fn take_over_columns<'a>(claims: &[&'a Claim]) -> Vec<Column<'a>> {
    let seen: Vec<_> = claims
        .iter()
        .filter_map(|claim| match claim.over {
            Over::Nothing => None,
            Over::Spent(stamp) => Some((stamp, true)),
            Over::Abandoned(stamp) => Some((stamp, false)),
        })
        .collect();
    vec![
        list(claims, |claim| Id(claim.operation.id())),
        list(&seen, |(stamp, _)| stamp.fence.get()),
        list(&seen, |(stamp, _)| stamp.owner.0),
        list(&seen, |(stamp, _)| stamp.tag as i16),
        list(&seen, |(stamp, _)| stamp.until.as_micros()),
        list(&seen, |(_, spent)| *spent),
        list(claims, |claim| claim.fence.get()),
        list(claims, |claim| claim.owner.0),
        list(claims, |claim| entry(claim).0),
        list(claims, |claim| entry(claim).1),
        list(claims, |claim| entry(claim).2),
        list(claims, |claim| span(claim.retention)),
        list(claims, |claim| span(claim.tombstone)),
        list(claims, |claim| claim.recovery as i16),
        list(claims, |claim| &claim.fingerprint.as_bytes()[..]),
    ]
}

fn claim_columns<'a>(claims: &[&'a Claim]) -> Vec<Column<'a>> {
    vec![
        list(claims, |claim| Id(claim.operation.id())),
        list(claims, |claim| claim.operation.tenant().as_str()),
        list(claims, |claim| claim.operation.scope().as_str()),
        list(claims, |claim| claim.operation.key().as_str()),
        list(claims, |claim| &claim.fingerprint.as_bytes()[..]),
        list(claims, |claim| claim.fence.get()),
        list(claims, |claim| claim.owner.0),
        list(claims, |claim| claim.recovery as i16),
        list(claims, |claim| span(claim.retention)),
        list(claims, |claim| span(claim.tombstone)),
        list(claims, |claim| entry(claim).0),
        list(claims, |claim| entry(claim).1),
        list(claims, |claim| entry(claim).2),
    ]
}

/// The state a claim enters, how long it may stay there, and the request it brings.
fn entry(claim: &Claim) -> (i16, i64, Option<&[u8]>) {
    match &claim.entry {
        Entry::Run { lease, request } => {
            (hapax_core::StateTag::Running as i16, span(*lease), request.as_deref())
        }
        Entry::Queue { pick_up, request } => {
            (hapax_core::StateTag::Pending as i16, span(*pick_up), Some(request))
        }
    }
}

fn list<'a, I: Copy, T: ToSql + Sync + Send + 'a>(
    items: &[I],
    part: impl Fn(&I) -> T,
) -> Column<'a> {
    Box::new(items.iter().map(part).collect::<Vec<T>>())
}

fn span(span: Duration) -> i64 {
    micros(span).min(SPAN_MAX)
}

const SETTLE: usize = 0;
const RENEW: usize = 1;
const TAKE_OVER: usize = 2;
const CLAIM: usize = 3;

/// Each part: how many parameters it has, what it writes and what it answers.
const PARTS: [(usize, &str, &str); 4] = [
    (11, include_str!("sql/settle.sql"), "SELECT id, changed_at, watched FROM settled"),
    (4, include_str!("sql/renew.sql"), "SELECT id, now, false FROM renewed"),
    (15, include_str!("sql/take_over.sql"), "SELECT id, changed_at, false FROM taken"),
    (13, include_str!("sql/claim.sql"), "SELECT id, created_at, false FROM claimed"),
];

/// The statement for every choice of parts, so that what is not in a batch costs nothing.
static TEXTS: LazyLock<[String; 1 << PARTS.len()]> = LazyLock::new(|| std::array::from_fn(text));

fn text(mask: usize) -> String {
    let (mut first, mut writes, mut answers) = (0, Vec::new(), Vec::new());
    for (at, (params, write, answer)) in PARTS.into_iter().enumerate() {
        if mask & (1 << at) != 0 {
            writes.push(renumbered(write, first));
            answers.push(answer);
            first += params;
        }
    }
    format!("WITH {}\n{}", writes.join(",\n"), answers.join("\nUNION ALL "))
}

/// The same text with its parameters counted from `first`.
fn renumbered(text: &str, first: usize) -> String {
    let mut pieces = text.split('$');
    let mut renumbered = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = piece[..digits].parse().unwrap_or_default();
        renumbered.push_str(&format!("${}{}", number + first, &piece[digits..]));
    }
    renumbered
}
