//! The answer: tables for people, JSON as the gateway's admin API gives it.

use std::io::{self, Write};

use hapax_gateway::admin::documents::{
    ConsumerRow, ConsumersDocument, CountedUpTo, DeliveryDocument, LetterDocument, LettersDocument,
};
use serde::Serialize;

use crate::table::{columns, harmless};

pub(super) fn consumers(listing: &ConsumersDocument, as_json: bool) -> io::Result<()> {
    if as_json {
        return json(listing);
    }
    let head = ["CONSUMER", "TENANT", "DEAD", "TRIED AGAIN", "HELD", "REMEMBERED"];
    table(head, listing.consumers.iter().map(consumer), listing.next.is_some())
}

pub(super) fn letters(listing: &LettersDocument, as_json: bool) -> io::Result<()> {
    if as_json {
        return json(listing);
    }
    let head = ["MESSAGE", "SINCE", "A DELIVERY NOW", "BYTES", "REASON", "DETAIL"];
    table(head, listing.letters.iter().map(letter), listing.next.is_some())
}

fn consumer(row: &ConsumerRow) -> [String; 6] {
    let counted = |CountedUpTo { count, more }| format!("{count}{}", if more { "+" } else { "" });
    let (name, tenant) = (harmless(&row.consumer.name), harmless(&row.consumer.tenant));
    let [dead, retried, held] = [row.dead, row.retried, row.held].map(counted);
    [name, tenant, dead, retried, held, counted(row.remembered)]
}

fn letter(letter: &LetterDocument) -> [String; 6] {
    let delivery = match letter.next_delivery {
        DeliveryDocument::IsFirst => "acted on",
        DeliveryDocument::Failed => "answered: failed",
        DeliveryDocument::Duplicate => "answered: done",
        DeliveryDocument::Conflict => "put aside",
    };
    [
        harmless(&letter.reference.message_id),
        letter.dead_at.clone(),
        delivery.to_owned(),
        letter.payload_bytes.to_string(),
        harmless(&letter.reason),
        harmless(&letter.detail),
    ]
}

fn table<const N: usize>(
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    is_more: bool,
) -> io::Result<()> {
    let rows: Vec<_> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    let mut out = io::stdout().lock();
    columns(&mut out, &rows)?;
    if is_more {
        writeln!(out, "There are more: --limit shows up to 1000, the admin API all of them.")?;
    }
    Ok(())
}

fn json(document: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, document)?;
    writeln!(out)
}
