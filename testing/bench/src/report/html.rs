//! The report as one page that needs nothing else: no script, no font, no other file.

use hapax_cli::{
    page::{figure, page as whole, table},
    plot::escape,
};

use super::{BenchReport, ReportSection, plot::ratios};
use crate::figures::{BoundedFigure, number};

/// The whole page.
pub(super) fn page(report: &BenchReport) -> String {
    let mut body = verdict(report) + &facts(report) + &contents(report);
    for (place, part) in report.parts.iter().enumerate() {
        if report.parts.len() > 1 {
            body.push_str(&format!("<h2 id=\"b{place}\">{}</h2>\n", escape(part.bench)));
        }
        for (section, at) in part.sections.iter().zip(0..) {
            section_of(&mut body, section, &anchor(place, at));
        }
    }
    whole(&format!("hapax bench {}", report.title), &body)
}

/// How many targets are met, and what must not be believed.
fn verdict(report: &BenchReport) -> String {
    let sections = || report.sections().map(|(_, section)| section);
    let judged =
        || sections().flat_map(|section| section.claims.iter().filter_map(BoundedFigure::met));
    let (met, unmet) = (judged().filter(|met| *met).count(), judged().filter(|met| !met).count());
    let invalid = sections().filter(|section| !section.invalid.is_empty()).count();
    let mut said = format!(
        "<p class=\"verdict\"><span class=\"met\">{} met</span>, <span class=\"unmet\">{unmet} not met</span>",
        counted(met, "target"),
    );
    if invalid > 0 {
        let tables = counted(invalid, "table");
        said.push_str(&format!(
            ", <span class=\"invalid\">{tables} INVALID: not to be believed</span>"
        ));
    }
    if report.cut_short {
        said.push_str(", <span class=\"invalid\">CUT SHORT before everything was measured</span>");
    }
    said + "</p>\n"
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn facts(report: &BenchReport) -> String {
    let rows = report.head().into_iter().map(|(name, value)| {
        let (name, text) = (escape(name), escape(&value));
        let text = if name == "command" { format!("<code>{text}</code>") } else { text };
        format!("<tr><th scope=\"row\">{name}</th><td>{text}</td></tr>\n")
    });
    format!("<table class=\"facts\"><tbody>\n{}</tbody></table>\n", rows.collect::<String>())
}

/// Links to every table, where there are many.
fn contents(report: &BenchReport) -> String {
    const FEW: usize = 4;
    if report.sections().count() <= FEW {
        return String::new();
    }
    let parts = report.parts.iter().enumerate();
    let links = parts.flat_map(|(place, part)| {
        part.sections.iter().zip(0..).map(move |(section, at)| {
            let (to, title) = (anchor(place, at), escape(&section.title));
            format!("<li><a href=\"#{to}\">{}: {title}</a></li>\n", part.bench)
        })
    });
    let links: String = links.collect();
    format!("<nav aria-label=\"Tables\"><ul>\n{links}</ul></nav>\n")
}

fn anchor(part: usize, section: usize) -> String {
    format!("b{part}t{section}")
}

fn section_of(page: &mut String, section: &ReportSection, id: &str) {
    let title = escape(&section.title);
    let invalid =
        if section.invalid.is_empty() { "" } else { " <span class=\"invalid\">INVALID</span>" };
    page.push_str(&format!(
        "<section aria-labelledby=\"{id}\">\n<h3 id=\"{id}\">{title}{invalid}</h3>\n"
    ));
    for reason in &section.invalid {
        page.push_str(&format!("<p class=\"invalid\">{}</p>\n", escape(reason)));
    }
    page.push_str(&table(&section.header, &section.rows));
    claims(page, &section.claims);
    let ratios = ratios(&section.title, &section.claims).draw().map(|svg| {
        figure(
            "Ratios",
            "Bars begin at 1x, where both are the same; the range of the rounds; targets dashed",
            &svg,
        )
    });
    let plots = section.plots.iter().filter_map(|plot| {
        let (x, y) = (plot.x.name, plot.y.name);
        let axes = format!("{y} against {x}; medians, with the range of the rounds");
        Some(figure(&plot.title, &axes, &plot.draw()?))
    });
    let figures: String = ratios.into_iter().chain(plots).collect();
    if !figures.is_empty() {
        page.push_str(&format!("<div class=\"figures\">\n{figures}</div>\n"));
    }
    page.push_str("</section>\n");
}

fn claims(page: &mut String, claims: &[BoundedFigure]) {
    if claims.is_empty() {
        return;
    }
    page.push_str("<div class=\"wide\" tabindex=\"0\"><table class=\"claims\">\n<thead><tr>");
    for name in ["what follows", "median", "range", "target", ""] {
        page.push_str(&format!("<th scope=\"col\">{name}</th>"));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for claim in claims {
        let BoundedFigure { what, measured, unit, .. } = claim;
        let (low, high) = (number(measured.min), number(measured.max));
        let range = if low == high { String::new() } else { format!("{low} to {high}") };
        let target = claim.target.map(|target| format!("{target}{unit}")).unwrap_or_default();
        let met = match claim.met() {
            Some(true) => "<span class=\"met\">met</span>",
            Some(false) => "<span class=\"unmet\">not met</span>",
            None => "",
        };
        let (what, median) = (escape(what), escape(&format!("{}{unit}", number(measured.median))));
        let target = escape(&target);
        page.push_str(&format!(
            "<tr><th scope=\"row\">{what}</th><td>{median}</td><td>{range}</td><td>{target}</td><td>{met}</td></tr>\n"
        ));
    }
    page.push_str("</tbody></table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        figures::{FigureTarget, MeasuredSpread},
        report::BenchPart,
    };

    fn claim(median: f64) -> BoundedFigure {
        BoundedFigure {
            what: "ours, against <theirs>".to_owned(),
            measured: MeasuredSpread { median, min: median, max: median * 2.0 },
            unit: "x",
            target: Some(FigureTarget::AtLeast(1.0)),
        }
    }

    fn report(invalid: Vec<String>) -> BenchReport {
        let section = ReportSection {
            title: "64 callers".to_owned(),
            header: vec!["way", "requests/s"],
            rows: vec![vec!["a & b".to_owned(), "1,000".to_owned()]],
            claims: vec![claim(2.0), claim(0.5)],
            invalid,
            ..ReportSection::default()
        };
        let mut report = BenchReport::new("store", vec![("kernel", "6.1".to_owned())]);
        report.parts.push(BenchPart { bench: "store", sections: vec![section] });
        report
    }

    #[test]
    fn the_page_begins_with_what_is_met() {
        let page = page(&report(Vec::new()));
        for part in [
            "<span class=\"met\">1 target met</span>, <span class=\"unmet\">1 not met</span></p>",
            "<tr><th scope=\"row\">kernel</th><td>6.1</td></tr>",
            "<tr><th scope=\"row\">a &amp; b</th><td>1,000</td></tr>",
            "<th scope=\"row\">ours, against &lt;theirs&gt;</th><td>2.00x</td>\
             <td>2.00 to 4.00</td><td>at least 1.00x</td><td><span class=\"met\">met</span></td>",
            "<rect class=\"bar unmet\"",
        ] {
            assert!(page.contains(part), "no {part} in\n{page}");
        }
        assert!(!page.contains("INVALID"));
    }

    #[test]
    fn a_table_that_must_not_be_believed_says_so_at_the_top_and_over_itself() {
        let page = page(&report(vec!["a key was executed twice".to_owned()]));
        assert!(
            page.contains("<span class=\"invalid\">1 table INVALID: not to be believed</span>")
        );
        assert!(page.contains("<p class=\"invalid\">a key was executed twice</p>"));
    }
}
