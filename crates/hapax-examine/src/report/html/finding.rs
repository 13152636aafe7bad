//! One finding: what happened, a picture of it, what to do, and its evidence.

use super::{accent, capital};
use crate::report::{
    document::{DefectDocument, ExchangeDocument, MessageDocument, ProbeDocument},
    summary::{exchange_text, races_text, severity},
    text::{markup, prose},
    timeline::timeline,
};

/// Most exchanges that are written out.
const EXCHANGES_MAX: usize = 40;

/// Where the finding of this number is on the page.
pub(super) fn slug(number: u32) -> String {
    format!("finding-{number}")
}

/// Findings further up that say some of the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct EarlierFindings {
    /// One that the same exchanges show.
    pub(super) same_exchanges: Option<u32>,
    /// One that is mended by the same.
    pub(super) same_advice: Option<u32>,
}

pub(super) fn finding_section(
    number: u32,
    before: EarlierFindings,
    probe: &ProbeDocument,
    defect: &DefectDocument,
) -> String {
    let earlier = before.same_exchanges;
    let evidence = match earlier {
        Some(earlier) => format!(
            "<p class=\"soft\">Shown by the same exchanges as <a href=\"#{}\">finding {earlier}</a>.</p>\n",
            slug(earlier)
        ),
        None => picture(probe, defect),
    };
    let proof = if earlier.is_none() { transcript(probe, defect) } else { String::new() };
    let again = before.same_advice.map_or_else(String::new, |earlier| {
        format!(" <small>(as for <a href=\"#{}\">finding {earlier}</a>)</small>", slug(earlier))
    });
    format!(
        "<section class=\"finding {}\" id=\"{}\">\n\
         <h3>{number}. {} <span class=\"tag\">{}: {}</span></h3>\n\
         {evidence}\
         <p class=\"todo\"><strong>What to do:</strong> {}{again}</p>\n\
         {proof}</section>\n",
        accent(defect.at_most),
        slug(number),
        prose(&capital(&defect.sentence)),
        markup(&defect.class),
        severity(defect.at_most),
        prose(&defect.advice)
    )
}

/// What happened when, and how close duplicates came.
fn picture(probe: &ProbeDocument, defect: &DefectDocument) -> String {
    let picture = timeline(&probe.shown_by(defect), &probe.notes);
    let caption = markup(&format!("{}: {}", probe.id, probe.question));
    let races = probe.races.as_ref().map_or_else(String::new, |races| {
        format!("<p class=\"soft\">{}</p>\n", markup(&races_text(races)))
    });
    if picture.is_empty() {
        return format!("<p class=\"soft\">{caption}</p>\n{races}");
    }
    format!("<figure>\n{picture}<figcaption>{caption}</figcaption>\n</figure>\n{races}")
}

/// What went over the wire, and how that is done again; folded.
fn transcript(probe: &ProbeDocument, defect: &DefectDocument) -> String {
    let shown = probe.shown_by(defect);
    let count = shown.len();
    let mut exchanges: String =
        shown.iter().take(EXCHANGES_MAX).map(|exchange| exchange_section(exchange)).collect();
    if count > EXCHANGES_MAX {
        let more = count - EXCHANGES_MAX;
        exchanges.push_str(&format!("<p>and {more} more, which the JSON of this report has</p>\n"));
    }
    let wire = if shown.is_empty() {
        exchanges
    } else {
        format!(
            "<details>\n<summary>What went over the wire ({count} exchanges)</summary>\n{exchanges}</details>\n"
        )
    };
    let (replay, reproducer) = (markup(&probe.replay), markup(&defect.reproducer));
    format!(
        "{wire}<details>\n<summary>How to see it again</summary>\n\
         <p>This sends the same requests in the same order, cut at the same places, under new keys. When the server \
         does what is its own affair: a race may need more than one run.</p>\n<pre>{replay}</pre>\n\
         <p>Much the same with curl:</p>\n<pre>{reproducer}</pre>\n</details>\n"
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
