//! Tables and numbers, as people read them in a terminal.

use std::io::{self, Write};

/// Prints a table whose first column names what the others measure.
pub fn print(
    out: &mut impl Write,
    header: &[&'static str],
    rows: &[Vec<String>],
) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(String::len).chain(header.get(column).map(|name| name.len())).max()
    };
    let widths: Vec<usize> = (0..header.len()).filter_map(width).collect();
    let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
    for row in std::iter::once(&header).chain(rows) {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
            0 => format!("  {cell:width$}"),
            _ => format!("  {cell:>width$}"),
        });
        writeln!(out, "{}", cells.collect::<String>().trim_end())?;
    }
    Ok(())
}

/// Columns as wide as what is in them; the last one as it comes.
pub fn columns<const N: usize>(out: &mut impl Write, rows: &[[String; N]]) -> io::Result<()> {
    let widths: [usize; N] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    });
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A whole number with its thousands apart: 1,234,567.
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number with as many digits as it deserves, thousands apart.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude < 10.0 {
        return format!("{value:.2}");
    }
    if magnitude < 1000.0 {
        return format!("{value:.1}");
    }
    grouped(value)
}

/// Text that cannot tell a terminal what to do.
pub fn harmless(text: &str) -> String {
    let is_harmless = |char: char| !char.is_control() || char == '\n' || char == '\t';
    text.chars().map(|char| if is_harmless(char) { char } else { '\u{fffd}' }).collect()
}
