//! The tables and the charts on one page.

use hapax_cli::{
    page::{figure, page, table},
    plot::escape,
};

use super::{ChartedReport, Section};

pub(crate) fn html(report: &ChartedReport) -> String {
    let sections: String = report.sections.iter().map(section).collect();
    page(report.title, &format!("<p>{}</p>\n{sections}", escape(&report.subject)))
}

fn section(section: &Section) -> String {
    let notes = section.notes.iter().map(|note| format!("<p>{}</p>\n", escape(note)));
    let notes: String = notes.collect();
    let title = escape(section.title);
    let chart = section.chart.as_ref().map(|chart| figure(chart.title(), "", chart));
    let (table, chart) = (table(&section.header, &section.rows), chart.unwrap_or_default());
    format!("<h2>{title}</h2>\n{notes}{table}<div class=\"figures\">\n{chart}</div>\n")
}
