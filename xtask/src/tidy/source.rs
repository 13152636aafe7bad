//! Just enough reading of formatted Rust to find functions, comments and strings.

/// A function as written: where it is and what is between its braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// The line of its `fn`, counted from one.
    pub line: usize,
    /// The lines of its body.
    pub body: Vec<&'a str>,
}

impl Function<'_> {
    /// The lines of its body that hold code.
    pub fn lines_of_code(&self) -> usize {
        let is_code = |line: &&&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        self.body.iter().filter(is_code).count()
    }
}

/// Every function with a body, in order.
///
/// The text is formatted by rustfmt, so a body ends at the first line that is the closing brace at
/// the indent of its `fn`.
pub fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<_> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}}}");
        let mut body = Vec::new();
        let mut in_body = line.ends_with('{');
        for (offset, line) in lines[at..].iter().enumerate() {
            let at_indent = offset == 0 || indent_of(line) == indent.len();
            if !in_body && at_indent && line.ends_with([';', '}']) {
                break;
            }
            if *line == end {
                found.push(Function { name, line: at + 1, body });
                break;
            }
            if in_body && offset > 0 {
                body.push(*line);
            }
            in_body |= at_indent && line.ends_with('{');
        }
    }
    found
}

/// The text of a line comment, if the line is nothing else and is not documentation.
pub fn plain_comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    (!text.starts_with(['/', '!'])).then(|| text.trim())
}

/// The string literals on a line, without escapes.
pub fn strings(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix("fn ") {
            let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            return Some(&after[..end]);
        }
        let (word, after) = rest.split_once(' ')?;
        let modifier = matches!(word, "pub" | "const" | "async" | "default" | "extern")
            || word.starts_with("pub(")
            || word.starts_with('"');
        rest = modifier.then_some(after)?;
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}
