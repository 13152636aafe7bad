//! The answer: tables for people, JSON for programs.

use std::io::{self, Write};

use hapax_gateway::admin::documents::{
    ChangedDocument, ExplanationDocument, ForeseenDocument, ListedDocument, ListingDocument,
    OperationDocument, RecordDocument, ShownDocument, StepDocument,
};
use serde::Serialize;

use super::{
    count::{KeysCount, state_words},
    error::KeysError,
    purge::PurgeTally,
};
use crate::{
    args::CountBy,
    table::{columns, grouped, harmless, print},
};

/// How the answer is given.
pub(super) struct KeysPrinter {
    json: bool,
}

impl KeysPrinter {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(super) fn list(&self, listing: &ListingDocument) -> Result<(), KeysError> {
        if self.json {
            return json(listing);
        }
        let mut out = io::stdout().lock();
        let rows = listing.operations.iter().map(row);
        let head = ["ID", "STATE", "ATTEMPT", "CHANGED", "TENANT", "SCOPE", "KEY"];
        let table: Vec<_> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
        columns(&mut out, &table)?;
        if let Some(next) = &listing.next {
            writeln!(out, "more: --after {next}")?;
        }
        Ok(())
    }

    pub(super) fn shown(&self, shown: &ShownDocument) -> Result<(), KeysError> {
        if self.json {
            return json(shown);
        }
        self.record(shown)?;
        let Some(steps) = shown.steps.as_ref().filter(|steps| !steps.is_empty()) else {
            return Ok(());
        };
        let mut out = io::stdout().lock();
        let head = ["STEP", "NAME", "AT", "RESULT"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(head).chain(steps.iter().map(step)).collect();
        writeln!(out)?;
        columns(&mut out, &rows)?;
        Ok(())
    }

    /// How many there are, a row for each tenant or scope if they were counted apart.
    pub(super) fn counted(&self, count: &KeysCount, by: Option<CountBy>) -> Result<(), KeysError> {
        if self.json {
            return json(count);
        }
        let words: Vec<_> = state_words().filter(|word| count.states.contains_key(*word)).collect();
        let of = |states: &std::collections::BTreeMap<String, u64>, total: u64| {
            let states = words.iter().map(|word| states.get(*word).copied().unwrap_or(0));
            states.chain([total]).map(|count| grouped(count as f64)).collect::<Vec<_>>()
        };
        let named = |name: &str, counts: Vec<String>| {
            std::iter::once(harmless(name)).chain(counts).collect::<Vec<_>>()
        };
        let mut rows: Vec<_> = count
            .groups
            .iter()
            .flatten()
            .map(|group| named(&group.name, of(&group.states, group.total)))
            .collect();
        rows.push(named("all", of(&count.states, count.total)));
        let first = by.map_or("", |by| match by {
            CountBy::Tenant => "tenant",
            CountBy::Scope => "scope",
        });
        let header: Vec<_> =
            std::iter::once(first).chain(words.iter().copied()).chain(["total"]).collect();
        let mut out = io::stdout().lock();
        print(&mut out, &header, &rows)?;
        if let Some(more) = count.groups_left_out.filter(|more| *more > 0) {
            writeln!(out, "and {more} more: --limit")?;
        }
        Ok(())
    }

    fn record(&self, shown: &ShownDocument) -> Result<(), KeysError> {
        let mut out = io::stdout().lock();
        let mut facts = vec![["id".to_owned(), shown.id.clone()]];
        facts.extend(shown.record.iter().flat_map(facts_of));
        columns(&mut out, &facts)?;
        let moments = shown.timeline.iter();
        let moments: Vec<_> =
            moments.map(|moment| [moment.at.clone(), harmless(&moment.what)]).collect();
        writeln!(out)?;
        columns(&mut out, &moments)?;
        writeln!(out, "{}  now", shown.now)?;
        let answer = shown.record.as_ref().and_then(|record| record.outcome.as_ref());
        if let Some(body) = answer.and_then(|answer| answer.body.as_ref()) {
            writeln!(out, "\n{}", harmless(body))?;
        } else if let Some(body) = answer.and_then(|answer| answer.body_base64.as_ref()) {
            writeln!(out, "\nin base64: {body}")?;
        }
        Ok(())
    }

    pub(super) fn explanation(&self, explanation: &ExplanationDocument) -> Result<(), KeysError> {
        if self.json {
            return json(explanation);
        }
        let mut out = io::stdout().lock();
        let ExplanationDocument { answer, another, because, advice, .. } = explanation;
        writeln!(out, "The same request again: {}", in_words(answer))?;
        writeln!(out, "Another request with this key: {}", in_words(another))?;
        writeln!(out, "\nWhy: {because}")?;
        writeln!(out, "What to do: {advice}")?;
        Ok(())
    }

    pub(super) fn foreseen(
        &self,
        shown: &ShownDocument,
        foreseen: &ForeseenDocument,
    ) -> Result<(), KeysError> {
        if self.json {
            return json(foreseen);
        }
        self.record(shown)?;
        let consequence = harmless(&foreseen.would);
        writeln!(io::stdout(), "\nNothing was changed. If it were, {consequence}.")?;
        Ok(())
    }

    pub(super) fn purged(&self, tally: &PurgeTally) -> Result<(), KeysError> {
        if self.json {
            return json(tally);
        }
        let PurgeTally { deleted, buried, timed_out } = tally;
        let mut out = io::stdout().lock();
        writeln!(out, "{deleted} removed, {buried} reduced to tombstones, {timed_out} timed out")?;
        Ok(())
    }

    pub(super) fn changed(&self, changed: &ChangedDocument) -> Result<(), KeysError> {
        if self.json {
            return json(changed);
        }
        let ChangedDocument { id, at, state, .. } = changed;
        writeln!(io::stdout(), "{id} is {state} since {at}")?;
        Ok(())
    }
}

fn facts_of(record: &RecordDocument) -> Vec<[String; 2]> {
    let OperationDocument { tenant, scope, key, state, fence, recovery, .. } = &record.operation;
    let mut facts = vec![
        ["tenant", tenant],
        ["scope", scope],
        ["key", key],
        ["state", state],
        ["attempt", &fence.to_string()],
        ["recovery", recovery],
    ]
    .into_iter()
    .map(|fact| fact.map(str::to_owned))
    .collect::<Vec<_>>();
    let mut fact = |name: &str, value: String| facts.push([name.to_owned(), value]);
    if let Some(owner) = &record.operation.owner {
        fact("owner", owner.clone());
    }
    if let Some(doubt) = &record.doubt {
        fact("doubt", doubt.clone());
    }
    if let Some(request) = &record.request {
        let line =
            format!("{} {}, body of {} bytes", request.method, request.path, request.body_bytes);
        fact("request", harmless(&line));
    } else if record.request_kept {
        fact("request", "stored, so that somebody else can finish it".to_owned());
    }
    if let Some(answer) = &record.outcome {
        let kept = match (answer.encrypted, answer.body_kept) {
            (true, _) => ", encrypted: give the master key to read it",
            (false, true) => "",
            (false, false) => ", not kept",
        };
        fact("answer", format!("{}, body of {} bytes{kept}", answer.status, answer.body_bytes));
        for header in &answer.headers {
            fact("", harmless(&format!("{}: {}", header.name, header.value)));
        }
    }
    facts
}

fn step(step: &StepDocument) -> [String; 4] {
    let result = step.result.as_ref().or(step.result_base64.as_ref());
    let told = result.map_or_else(|| format!("{} bytes", step.result_bytes), |text| harmless(text));
    [step.number.to_string(), harmless(&step.name), step.at.clone(), told]
}

fn json(value: &impl Serialize) -> Result<(), KeysError> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

fn row(listed: &ListedDocument) -> [String; 7] {
    match listed {
        ListedDocument::Readable(operation) => [
            &operation.id,
            &operation.state,
            &operation.fence.to_string(),
            &operation.changed_at,
            &operation.tenant,
            &operation.scope,
            &operation.key,
        ]
        .map(Clone::clone),
        ListedDocument::Unreadable { id, unreadable } => {
            let unreadable = harmless(unreadable);
            [id, "unreadable", "", "", "", "", &unreadable].map(str::to_owned)
        }
    }
}

fn in_words(answer: &str) -> &str {
    match answer {
        "runs" => "it runs",
        "takes_over" => "it takes over from an owner that is gone",
        "waits" => "it waits, or is told to (409)",
        "replays" => "it gets the stored answer",
        "refused_in_doubt" => "it is refused, because nobody knows what happened (409)",
        "refused_mismatch" => "it is refused, because the key was used for something else (422)",
        "refused_gone" => "it is refused, because the key is used up (410)",
        other => other,
    }
}
