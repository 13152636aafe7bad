//! A batch as the text and the parameters of one statement.

use std::{array, sync::LazyLock, time::Duration};

use hapax_core::{
    StateTag, Timestamp,
    codec::Sealed,
    step::StepRow,
    store::{By, Claim, Entry, KeepStep, Over, Renew, Settle, Settlement, Write},
    time::micros,
};
use tokio_postgres::types::ToSql;

use crate::{answer::Answer, row::Id};

/// Longest span written, so that no sum of instants and spans overflows.
const SPAN_MAX: i64 = i64::MAX / 8;

/// The columns of a batch, part by part, each sorted by id: two batches that meet wait for each
/// other and do not lock up.
pub(crate) struct Parts<'a> {
    mask: usize,
    form: Form,
    columns: Vec<Column<'a>>,
}

/// How the items of a batch are given. Each array costs the server something for every item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// No part has more than one item: there are no arrays.
    Lone,
    /// Claims have the same terms, and settles have: those are no arrays.
    SameTerms,
    /// Everything is an array.
    Mixed,
}

type Column<'a> = Box<dyn ToSql + Sync + Send + 'a>;

impl<'a> Parts<'a> {
    /// Beside each write the outcome it stores, if any, sealed.
    pub(crate) fn new(batch: &'a [Write], sealed: &'a [Option<Sealed>]) -> Self {
        let mut sorted: Vec<_> = batch.iter().zip(sealed).collect();
        sorted.sort_unstable_by_key(|(write, _)| write.id());
        let (mut settles, mut renews, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        let (mut takeovers, mut claims) = (Vec::new(), Vec::new());
        for (write, sealed) in sorted {
            match write {
                Write::Settle(settle) => settles.push((settle, sealed)),
                Write::Renew(renew) => renews.push(renew),
                Write::Step(keep) => steps.push(keep),
                Write::Claim(claim) if claim.over == Over::Nothing => claims.push(claim),
                Write::Claim(claim) => takeovers.push(claim),
            }
        }
        let counts = [settles.len(), renews.len(), steps.len(), takeovers.len(), claims.len()];
        let form = if counts.into_iter().max() == Some(1) {
            Form::Lone
        } else if are_alike(&claims, |claim| ClaimTerms::of(claim))
            && are_alike(&settles, |(settle, _)| SettleTerms::of(settle))
        {
            Form::SameTerms
        } else {
            Form::Mixed
        };
        let mut parts = Self { mask: 0, form, columns: Vec::new() };
        if !settles.is_empty() {
            parts.add(SETTLE, settle_columns(form, &settles));
        }
        if settles.iter().any(|(settle, _)| matches!(settle.to, Settlement::InDoubt(_))) {
            parts.add(DOUBT, Vec::new());
        }
        if !renews.is_empty() {
            parts.add(RENEW, renew_columns(form, &renews));
        }
        if !steps.is_empty() {
            parts.add(KEEP_STEP, step_columns(form, &steps));
        }
        if !takeovers.is_empty() {
            parts.add(TAKE_OVER, take_over_columns(form, &takeovers));
        }
        if !claims.is_empty() {
            parts.add(CLAIM, claim_columns(form, &claims));
        }
        parts
    }

    fn add(&mut self, part: usize, columns: Vec<Column<'a>>) {
        self.mask |= 1 << part;
        self.columns.extend(columns);
    }

    /// What the statement is given.
    pub(crate) fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.columns.iter().map(|column| &**column as &(dyn ToSql + Sync)).collect()
    }

    /// The statement.
    pub(crate) fn text(&self) -> &'static str {
        let texts = match self.form {
            Form::Lone => &LONE_TEXTS,
            Form::SameTerms => &SAME_TERMS_TEXTS,
            Form::Mixed => &MIXED_TEXTS,
        };
        &texts[self.mask]
    }
}

fn are_alike<I, T: PartialEq>(items: &[I], terms: impl Fn(&I) -> T) -> bool {
    items.split_first().is_none_or(|(first, others)| {
        let first = terms(first);
        others.iter().all(|other| terms(other) == first)
    })
}

/// What settles of one batch usually have in common.
#[derive(PartialEq)]
struct SettleTerms {
    fence: i64,
    owner: i64,
    seen: Option<i16>,
    until: Option<i64>,
    state: i16,
    doubt: i16,
    keep: i64,
}

impl SettleTerms {
    fn of(settle: &Settle) -> Self {
        let (fence, owner, seen, until) = match settle.by {
            By::Owner { fence, owner } => (fence, owner, None, None),
            By::Onlooker(stamp) => {
                (stamp.fence, stamp.owner, Some(stamp.tag as i16), Some(stamp.until.as_micros()))
            }
        };
        let doubt = match settle.to {
            Settlement::InDoubt(doubt) => doubt as i16,
            Settlement::Completed(_)
            | Settlement::Failed(_)
            | Settlement::Released
            | Settlement::Declined => 0,
        };
        let (state, keep) = (settle.to.tag() as i16, keep(settle));
        Self { fence: fence.get(), owner: owner.0, seen, until, state, doubt, keep }
    }
}

fn settle_columns<'a>(form: Form, settles: &[(&'a Settle, &'a Option<Sealed>)]) -> Vec<Column<'a>> {
    let terms: Vec<_> = settles.iter().map(|(settle, _)| SettleTerms::of(settle)).collect();
    vec![
        list(form, settles, |(settle, _)| Id(settle.id)),
        term(form, &terms, |terms| terms.fence),
        term(form, &terms, |terms| terms.owner),
        term(form, &terms, |terms| terms.seen),
        term(form, &terms, |terms| terms.until),
        term(form, &terms, |terms| terms.state),
        term(form, &terms, |terms| terms.doubt),
        term(form, &terms, |terms| terms.keep),
        list(form, settles, |(_, sealed)| sealed.as_ref().map(Answer)),
    ]
}

fn renew_columns<'a>(form: Form, renews: &[&'a Renew]) -> Vec<Column<'a>> {
    vec![
        list(form, renews, |renew| Id(renew.id)),
        list(form, renews, |renew| renew.fence.get()),
        list(form, renews, |renew| renew.owner.0),
        list(form, renews, |renew| span(renew.lease)),
    ]
}

fn step_columns<'a>(form: Form, steps: &[&'a KeepStep]) -> Vec<Column<'a>> {
    // The server's clock says when.
    let rows: Vec<_> = steps.iter().map(|keep| StepRow::seal(Timestamp::ZERO, keep)).collect();
    vec![
        list(form, steps, |keep| Id(keep.id)),
        list(form, steps, |keep| keep.fence.get()),
        list(form, steps, |keep| keep.owner.0),
        list(form, &rows, |row| row.life),
        list(form, &rows, |row| row.number),
        list(form, &rows, |row| row.format),
        list(form, steps, |keep| keep.step.name().as_str()),
        list(form, &rows, |row| row.version),
        list(form, steps, |keep| &keep.step.result()[..]),
        list(form, &rows, |row| row.digest.to_vec()),
    ]
}

fn take_over_columns<'a>(form: Form, claims: &[&'a Claim]) -> Vec<Column<'a>> {
    let seen: Vec<_> = claims
        .iter()
        .filter_map(|claim| match claim.over {
            Over::Nothing => None,
            Over::Spent(stamp) => Some((stamp, true)),
            Over::Abandoned(stamp) => Some((stamp, false)),
        })
        .collect();
    vec![
        list(form, claims, |claim| Id(claim.operation.id())),
        list(form, &seen, |(stamp, _)| stamp.fence.get()),
        list(form, &seen, |(stamp, _)| stamp.owner.0),
        list(form, &seen, |(stamp, _)| stamp.tag as i16),
        list(form, &seen, |(stamp, _)| stamp.until.as_micros()),
        list(form, &seen, |(_, spent)| *spent),
        list(form, claims, |claim| claim.fence.get()),
        list(form, claims, |claim| claim.owner.0),
        list(form, claims, |claim| entry(claim).0),
        list(form, claims, |claim| entry(claim).1),
        list(form, claims, |claim| entry(claim).2),
        list(form, claims, |claim| span(claim.retention)),
        list(form, claims, |claim| span(claim.tombstone)),
        list(form, claims, |claim| claim.recovery as i16),
        list(form, claims, |claim| &claim.fingerprint.as_bytes()[..]),
    ]
}

/// What claims of one batch usually have in common.
#[derive(PartialEq)]
struct ClaimTerms {
    fence: i64,
    owner: i64,
    recovery: i16,
    retention: i64,
    tombstone: i64,
    state: i16,
    lease: i64,
}

impl ClaimTerms {
    fn of(claim: &Claim) -> Self {
        let (state, lease, _) = entry(claim);
        Self {
            fence: claim.fence.get(),
            owner: claim.owner.0,
            recovery: claim.recovery as i16,
            retention: span(claim.retention),
            tombstone: span(claim.tombstone),
            state,
            lease,
        }
    }
}

fn claim_columns<'a>(form: Form, claims: &[&'a Claim]) -> Vec<Column<'a>> {
    let terms: Vec<_> = claims.iter().map(|claim| ClaimTerms::of(claim)).collect();
    vec![
        list(form, claims, |claim| Id(claim.operation.id())),
        list(form, claims, |claim| claim.operation.tenant().as_str()),
        list(form, claims, |claim| claim.operation.scope().as_str()),
        list(form, claims, |claim| claim.operation.key().as_str()),
        list(form, claims, |claim| &claim.fingerprint.as_bytes()[..]),
        term(form, &terms, |terms| terms.fence),
        term(form, &terms, |terms| terms.owner),
        term(form, &terms, |terms| terms.recovery),
        term(form, &terms, |terms| terms.retention),
        term(form, &terms, |terms| terms.tombstone),
        term(form, &terms, |terms| terms.state),
        term(form, &terms, |terms| terms.lease),
        list(form, claims, |claim| entry(claim).2),
    ]
}

/// The state a claim enters, how long it may stay there, and the request it brings.
fn entry(claim: &Claim) -> (i16, i64, Option<&[u8]>) {
    match &claim.entry {
        Entry::Run { lease, request } => {
            (StateTag::Running as i16, span(*lease), request.as_deref())
        }
        Entry::Queue { pick_up, request } => {
            (StateTag::Pending as i16, span(*pick_up), Some(request))
        }
    }
}

/// One parameter: the items' values as an array, or the value of the only item.
fn list<'a, I, T: ToSql + Sync + Send + 'a>(
    form: Form,
    items: &[I],
    value: impl Fn(&I) -> T,
) -> Column<'a> {
    match items {
        [item] if form == Form::Lone => Box::new(value(item)),
        _ => Box::new(items.iter().map(value).collect::<Vec<T>>()),
    }
}

/// One parameter that is a term: where all terms are the same, the value of the first.
fn term<'a, I, T: ToSql + Sync + Send + 'a>(
    form: Form,
    items: &[I],
    value: impl Fn(&I) -> T,
) -> Column<'a> {
    match items {
        [item, ..] if form == Form::SameTerms => Box::new(value(item)),
        _ => list(form, items, value),
    }
}

/// How long a settled record lives at least; negative where it lives no longer than that.
fn keep(settle: &Settle) -> i64 {
    match settle.to {
        Settlement::Declined => -span(settle.keep).max(1),
        Settlement::Completed(_)
        | Settlement::Failed(_)
        | Settlement::Released
        | Settlement::InDoubt(_) => span(settle.keep),
    }
}

/// A span as it is written.
pub(crate) fn span(span: Duration) -> i64 {
    micros(span).min(SPAN_MAX)
}

const SETTLE: usize = 0;
const RENEW: usize = 1;
const KEEP_STEP: usize = 2;
const TAKE_OVER: usize = 3;
const CLAIM: usize = 4;
/// Not a part with items of its own: said of a batch in which a settle leaves a doubt.
const DOUBT: usize = 5;

/// A part of a batch.
struct Part {
    params: usize,
    /// What it writes.
    write: &'static str,
    /// What it answers.
    answer: &'static str,
    /// What it leaves unfinished, and when to look at it.
    unfinished: Option<&'static str>,
}

const PARTS: [Part; 5] = [
    Part {
        params: 9,
        write: include_str!("sql/settle.sql"),
        answer: "SELECT id, changed_at, watched FROM settled",
        unfinished: None,
    },
    Part {
        params: 4,
        write: include_str!("sql/renew.sql"),
        answer: "SELECT id, now, false FROM renewed",
        unfinished: Some("SELECT id, until FROM renewed"),
    },
    Part {
        params: 10,
        write: include_str!("sql/keep_step.sql"),
        answer: "SELECT id, now, false FROM running",
        unfinished: None,
    },
    Part {
        params: 15,
        write: include_str!("sql/take_over.sql"),
        answer: "SELECT id, changed_at, false FROM taken",
        unfinished: Some("SELECT id, until FROM taken"),
    },
    Part {
        params: 13,
        write: include_str!("sql/claim.sql"),
        answer: "SELECT id, created_at, false FROM claimed",
        unfinished: None,
    },
];

/// Remembers the doubts that settles leave.
const DOUBTED: &str = include_str!("sql/doubt.sql");

/// The statement for every choice of parts, so that what is not in a batch costs nothing.
static MIXED_TEXTS: LazyLock<Texts> = LazyLock::new(|| array::from_fn(|mask| text(mask, mixed)));
/// The same for batches whose terms are the same.
static SAME_TERMS_TEXTS: LazyLock<Texts> =
    LazyLock::new(|| array::from_fn(|mask| text(mask, same_terms)));
/// The same for batches without more than one item in any part.
static LONE_TEXTS: LazyLock<Texts> = LazyLock::new(|| array::from_fn(|mask| text(mask, lone)));

type Texts = [String; 1 << (PARTS.len() + 1)];

fn text(mask: usize, form: fn(&str) -> String) -> String {
    let (mut first, mut writes, mut answers) = (0, Vec::new(), Vec::new());
    let mut unfinished = Vec::new();
    for (at, part) in PARTS.into_iter().enumerate() {
        if mask & (1 << at) != 0 {
            writes.push(renumbered(&form(part.write), first));
            answers.push(part.answer);
            unfinished.extend(part.unfinished);
            first += part.params;
        }
    }
    if mask & (1 << SETTLE) != 0 && mask & (1 << DOUBT) != 0 {
        writes.push(DOUBTED.to_owned());
    }
    if !unfinished.is_empty() {
        writes.push(filed(&unfinished.join(" UNION ALL ")));
    }
    format!("WITH {}\n{}", writes.join(",\n"), answers.join("\nUNION ALL "))
}

/// Files what is left unfinished, all of it in one order, as sweepers do.
fn filed(unfinished: &str) -> String {
    format!(
        "filed AS (INSERT INTO hapax.unfinished AS u (id, look_at) \
         SELECT id, until FROM ({unfinished}) AS f ORDER BY id \
         ON CONFLICT (id) DO UPDATE SET look_at = excluded.look_at)"
    )
}

/// The text with everything in arrays: what it calls `term` is one, too.
fn mixed(text: &str) -> String {
    text.replace("term(", "unnest(")
}

/// The text with plain values in place of the terms.
fn same_terms(text: &str) -> String {
    let mut pieces = text.split("term(");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push('(');
        plain.push_str(&piece.replacen("[])", ")", 1));
    }
    plain
}

/// The text with plain values in place of arrays.
fn lone(text: &str) -> String {
    mixed(text).replace("unnest(", "(").replace("[])", ")")
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
