//! Bytes as text that can be read, and text as it stands in markup and on a terminal.

/// Bytes as text: what is no UTF-8, or would do something to whatever shows it, is written as `\xNN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenText {
    pub(super) text: String,
    /// Whether anything was written that way.
    pub(super) is_escaped: bool,
}

impl WrittenText {
    /// These bytes as they are.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut written = Self { text: String::with_capacity(bytes.len()), is_escaped: false };
        for chunk in bytes.utf8_chunks() {
            for char in chunk.valid().chars() {
                written.push(char);
            }
            for byte in chunk.invalid() {
                written.text.push_str(&format!("\\x{byte:02x}"));
                written.is_escaped = true;
            }
        }
        written
    }

    /// The head of a message, whose lines end with `\n` alone.
    pub(super) fn of_head(bytes: &[u8]) -> Self {
        let lines: Vec<_> = bytes
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .collect();
        Self::of(&lines.join(&b'\n'))
    }

    fn push(&mut self, char: char) {
        if is_shown(char) {
            self.text.push(char);
            return;
        }
        let code = u32::from(char);
        self.text.push_str(&if code < 0x100 {
            format!("\\x{code:02x}")
        } else {
            format!("\\u{{{code:x}}}")
        });
        self.is_escaped = true;
    }
}

/// Whether this is text: neither a control character, nor one that turns the direction of others.
fn is_shown(char: char) -> bool {
    match char {
        '\n' | '\t' => true,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        char => !char.is_control(),
    }
}

/// Text as it stands in HTML, SVG and XML, whoever wrote it.
pub(super) fn markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML has no such characters.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            char if is_shown(char) => escaped.push(char),
            _ => escaped.push('\u{fffd}'),
        }
    }
    escaped
}

/// The same, with what stands between two backticks as code.
pub(super) fn prose(text: &str) -> String {
    let parts: Vec<_> = text.split('`').collect();
    // One backtick alone is a backtick.
    if parts.len().is_multiple_of(2) {
        return markup(text);
    }
    let parts = parts.iter().enumerate().map(|(at, part)| match at % 2 {
        0 => markup(part),
        _ => format!("<code>{}</code>", markup(part)),
    });
    parts.collect::<Vec<_>>().concat()
}

/// Text in lines of at most so many characters, each after `indent`; words that are longer are broken.
pub(crate) fn wrapped(text: &str, indent: &str, columns: usize) -> String {
    let room = columns.saturating_sub(indent.chars().count()).max(8);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        let mut length = 0;
        for word in paragraph.split(' ').flat_map(|word| pieces(word, room)) {
            let word_length = word.chars().count();
            if length > 0 && length + 1 + word_length > room {
                lines.push(std::mem::take(&mut line));
                length = 0;
            }
            if length > 0 {
                line.push(' ');
                length += 1;
            }
            line.push_str(&word);
            length += word_length;
        }
        lines.push(line);
    }
    let lines = lines.iter().map(|line| format!("{indent}{}\n", plain(line)));
    lines.collect::<Vec<_>>().concat()
}

/// Text that does nothing to a terminal.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|char| if is_shown(char) { char } else { '\u{fffd}' }).collect()
}

/// At most so many characters of a text, in one line.
pub(super) fn shortened(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{kept}…")
}

fn pieces(word: &str, room: usize) -> Vec<String> {
    let chars: Vec<_> = word.chars().collect();
    if chars.is_empty() {
        return vec![String::new()];
    }
    chars.chunks(room).map(|piece| piece.iter().collect()).collect()
}
