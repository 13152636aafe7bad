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

/// `earlier` is the finding, if there is one, that the same exchanges show.
pub(super) fn finding_section(
    number: u32,
    earlier: Option<u32>,
    probe: &ProbeDocument,
    defect: &DefectDocument,
) -> String {
    let evidence = match earlier {
        Some(earlier) => format!(
            "<p class=\"soft\">Shown by the same exchanges as <a href=\"#{}\">finding {earlier}</a>.</p>\n",
            slug(earlier)
        ),
        None => picture(probe, defect),
    };
    let proof = if earlier.is_none() { transcript(probe, defect) } else { String::new() };
    format!(
        "<section class=\"finding {}\" id=\"{}\">\n\
         <h3>{number}. {} <span class=\"tag\">{}: {}</span></h3>\n\
         {evidence}\
         <p class=\"todo\"><strong>What to do:</strong> {}</p>\n\
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
    let reproducer = markup(&defect.reproducer);
    format!(
        "{wire}<details>\n<summary>How to see it again</summary>\n<pre>{reproducer}</pre>\n</details>\n"
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
