//! The grade as a small picture for a README.

use super::{
    document::{GradeDocument, ReportDocument},
    summary::{coverage_text, letter_text},
    text::markup,
};
use crate::GradeLetter;

const LABEL: &str = "retries";
const HEIGHT: usize = 20;
/// How wide a character of this size is, more or less; texts are stretched to it.
const CHARACTER_WIDTH: usize = 7;
const MARGIN: usize = 6;

/// A letter with its coverage: `retries | B 24/32`.
pub fn render_badge(report: &ReportDocument) -> String {
    let text = match &report.grade {
        GradeDocument::Graded { letter, .. } => {
            let covered = &report.coverage;
            format!("{} {}/{}", letter.name(), covered.conclusive, covered.total)
        }
        GradeDocument::NotGraded { .. } => "not graded".to_owned(),
    };
    let colour = match &report.grade {
        GradeDocument::Graded { letter, .. } => colour(*letter),
        GradeDocument::NotGraded { .. } => "#5c6675",
    };
    let (left_text, right_text) = (width(LABEL), width(&text));
    let (left, right) = (left_text + 2 * MARGIN, right_text + 2 * MARGIN);
    let all = left + right;
    let title = format!("retries: {}, {}", letter_text(&report.grade), coverage_text(report));
    let (title, text) = (markup(&title), markup(&text));
    let (label_at, text_at) = (MARGIN, left + MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n\
         <title>{title}</title>\n\
         <clipPath id=\"r\"><rect width=\"{all}\" height=\"{HEIGHT}\" rx=\"3\"/></clipPath>\n\
         <g clip-path=\"url(#r)\"><rect width=\"{left}\" height=\"{HEIGHT}\" fill=\"#3b4250\"/>\
         <rect x=\"{left}\" width=\"{right}\" height=\"{HEIGHT}\" fill=\"{colour}\"/></g>\n\
         <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">\
         <text x=\"{label_at}\" y=\"14\" textLength=\"{left_text}\">{LABEL}</text>\
         <text x=\"{text_at}\" y=\"14\" textLength=\"{right_text}\" font-weight=\"bold\">{text}</text></g>\n\
         </svg>\n"
    )
}

fn width(text: &str) -> usize {
    text.chars().count() * CHARACTER_WIDTH
}

/// White text can be read on each.
const fn colour(letter: GradeLetter) -> &'static str {
    match letter {
        GradeLetter::F => "#b42318",
        GradeLetter::D => "#b54708",
        GradeLetter::C => "#8a6100",
        GradeLetter::B => "#5f6f12",
        GradeLetter::AMinus => "#3f7a2a",
        GradeLetter::A | GradeLetter::APlus => "#1a7f4b",
    }
}
