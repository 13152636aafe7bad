//! Pages that need nothing else: no script, no font, no other file.

use crate::plot::{self, Svg, escape};

const CSS: &str = include_str!("page.css");

/// A page with this title over this body, which is HTML.
pub fn page(title: &str, body: &str) -> String {
    let (title, drawings) = (escape(title), plot::CSS);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>\n{drawings}{CSS}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// A table whose first column names what the others measure; nothing if it has no rows.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = String::from("<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr>");
    for name in header {
        table.push_str(&format!("<th scope=\"col\">{}</th>", escape(name)));
    }
    table.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        table.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let (cell, name) = (escape(cell), if at == 0 { "th scope=\"row\"" } else { "td" });
            table.push_str(&format!("<{name}>{cell}</{}>", if at == 0 { "th" } else { "td" }));
        }
        table.push_str("</tr>\n");
    }
    table + "</tbody></table></div>\n"
}

/// A drawing under its title, and what there is to say about it.
pub fn figure(title: &str, about: &str, drawing: &Svg) -> String {
    let (title, about, drawing) = (escape(title), escape(about), drawing.finish());
    format!(
        "<figure>\n<figcaption>{title}<small>{about}</small></figcaption>\n{drawing}</figure>\n"
    )
}
