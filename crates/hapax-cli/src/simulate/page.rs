//! The tables and the plots on one page, without anything from elsewhere.

use super::{
    plot::{self, escaped},
    report::{Report, Section},
};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
padding:0 1rem;color:#1f2328;background:#fff}table{border-collapse:collapse;margin:1rem 0}\
th,td{padding:.25rem .75rem;text-align:right;border-bottom:1px solid #d8dee4}\
th:first-child,td:first-child{text-align:left}svg{max-width:100%;height:auto}";

pub(super) fn html(report: &Report) -> String {
    let sections: String = report.sections.iter().map(section).collect();
    let (title, subject) = (escaped(report.title), escaped(&report.subject));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<h1>{title}</h1>\n<p>{subject}</p>\n{sections}</html>\n"
    )
}

fn section(section: &Section) -> String {
    let cells = |tag: &str, texts: &mut dyn Iterator<Item = &str>| {
        let cells: String = texts.map(|text| format!("<{tag}>{}</{tag}>", escaped(text))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let header = cells("th", &mut section.header.iter().copied());
    let rows = section.rows.iter().map(|row| cells("td", &mut row.iter().map(String::as_str)));
    let rows: String = rows.collect();
    let notes = section.notes.iter().map(|note| format!("<p>{}</p>\n", escaped(note)));
    let notes: String = notes.collect();
    let title = escaped(section.title);
    let plot = plot::svg(&[&section.chart]);
    format!("<h2>{title}</h2>\n{notes}<table>\n{header}{rows}</table>\n{plot}")
}
