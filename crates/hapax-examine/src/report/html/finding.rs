//! One finding: what happened, a picture of it, what to do, and its evidence.

use super::{accent, capital};
use crate::report::{
    document::{DefectDocument, ExchangeDocument, MessageDocument, ProbeDocument},
    summary::{exchange_text, races_text, severity},
    text::markup,
    timeline::timeline,
};

/// Most exchanges that are written out.
const EXCHANGES_MAX: usize = 40;

/// Where the finding of this number is on the page.
pub(super) fn slug(number: u32) -> String {
    format!("finding-{number}")
}

pub(super) fn finding_section(
    number: u32,
    probe: &ProbeDocument,
    defect: &DefectDocument,
) -> String {
    let shown = probe.shown_by(defect);
    let picture = timeline(&shown, &probe.notes);
    let races = probe.races.as_ref().map_or_else(String::new, |races| {
        format!("<p class=\"soft\">{}</p>\n", markup(&races_text(races)))
    });
    let figure = if picture.is_empty() {
        String::new()
    } else {
        let caption = format!("{}: {}", probe.id, probe.question);
        format!("<figure>\n{picture}<figcaption>{}</figcaption>\n</figure>\n", markup(&caption))
    };
    format!(
        "<section class=\"finding {}\" id=\"{}\">\n\
         <h3>{number}. {} <span class=\"tag\">{}: {}</span></h3>\n\
         {figure}{races}\
         <p class=\"todo\"><strong>What to do:</strong> {}</p>\n\
         {}\
         <details>\n<summary>How to see it again</summary>\n<pre>{}</pre>\n</details>\n</section>\n",
        accent(defect.at_most),
        slug(number),
        markup(&capital(&defect.sentence)),
        markup(&defect.class),
        severity(defect.at_most),
        markup(&defect.advice),
        transcript(&shown),
        markup(&defect.reproducer)
    )
}

/// What went over the wire, folded.
fn transcript(shown: &[&ExchangeDocument]) -> String {
    if shown.is_empty() {
        return String::new();
    }
    let mut exchanges: String =
        shown.iter().take(EXCHANGES_MAX).map(|exchange| exchange_section(exchange)).collect();
    if shown.len() > EXCHANGES_MAX {
        let more = shown.len() - EXCHANGES_MAX;
        exchanges.push_str(&format!("<p>and {more} more, which the JSON of this report has</p>\n"));
    }
    let count = shown.len();
    format!(
        "<details>\n<summary>What went over the wire ({count} exchanges)</summary>\n{exchanges}</details>\n"
    )
}

fn exchange_section(exchange: &ExchangeDocument) -> String {
    let answer = match exchange.received() {
        Some(received) => message(received),
        None => format!("<em>{}</em>", markup(&exchange.end.describe())),
    };
    format!(
        "<h4>{}</h4>\n<div class=\"pair\">\n<pre>{}</pre>\n<pre>{answer}</pre>\n</div>\n",
        markup(&exchange_text(exchange)),
        message(&exchange.request)
    )
}

fn message(message: &MessageDocument) -> String {
    let mut text = markup(&message.head);
    if !message.body.is_empty() {
        text.push_str(&format!("\n\n{}", markup(&message.body)));
    }
    if message.is_shortened {
        text.push_str(&format!("\n<em>shortened: the body has {} bytes</em>", message.body_bytes));
    }
    text
}
