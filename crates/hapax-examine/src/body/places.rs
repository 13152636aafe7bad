//! Where in a body things are, so that one of them can be replaced and the rest stays as it was written.

use std::ops::Range;

use serde_json::Value;

use crate::BodyTemplate;

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemplateForm {
    Json,
    /// `application/x-www-form-urlencoded`.
    Pairs,
}

impl TemplateForm {
    /// These members as a body.
    pub(super) fn joined(self, members: &[&str]) -> String {
        match self {
            Self::Json => format!("{{{}}}", members.join(",")),
            Self::Pairs => members.join("&"),
        }
    }

    /// This text as a value.
    pub(super) fn text(self, text: &str) -> String {
        match self {
            Self::Json => format!("\"{text}\""),
            Self::Pairs => text.to_owned(),
        }
    }

    /// One more member, before another.
    pub(super) fn another_member(self) -> &'static str {
        match self {
            Self::Json => "\"note\":\"changed\",",
            Self::Pairs => "note=changed&",
        }
    }
}

/// Where in a body things are.
#[derive(Debug)]
pub(super) struct BodyPlaces {
    pub(super) form: TemplateForm,
    /// Each with its name; those of JSON of the outermost object.
    pub(super) members: Vec<Range<usize>>,
    pub(super) numbers: Vec<Range<usize>>,
    /// Texts that are values, without their quotes.
    pub(super) strings: Vec<Range<usize>>,
}

impl BodyPlaces {
    /// Nothing if it is neither JSON nor pairs.
    pub(super) fn read(template: &BodyTemplate, text: &str) -> Option<Self> {
        if template.content_type.contains("x-www-form-urlencoded") {
            return Some(Self::of_pairs(text));
        }
        serde_json::from_str::<Value>(text).ok()?;
        Some(Self::of_json(text))
    }

    fn empty(form: TemplateForm) -> Self {
        Self { form, members: Vec::new(), numbers: Vec::new(), strings: Vec::new() }
    }

    fn of_pairs(text: &str) -> Self {
        let mut found = Self::empty(TemplateForm::Pairs);
        let mut at = 0;
        for pair in text.split('&') {
            let place = at..at + pair.len();
            at = place.end + 1;
            if let Some((name, value)) = pair.split_once('=') {
                let is_number =
                    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let of_value = if is_number { &mut found.numbers } else { &mut found.strings };
                of_value.push(place.start + name.len() + 1..place.end);
                found.members.push(place);
            }
        }
        found
    }

    /// The text is JSON.
    fn of_json(text: &str) -> Self {
        let mut found = Self::empty(TemplateForm::Json);
        let bytes = text.as_bytes();
        let (mut at, mut depth, mut member) = (0, 0_u32, None::<usize>);
        while let Some(byte) = bytes.get(at) {
            let mut end = at + 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' | b',' => {
                    if depth == 1 {
                        found.members.extend(member.take().map(|start| trimmed(text, start..at)));
                    }
                    depth -= u32::from(*byte != b',');
                }
                b'"' => {
                    end = string_end(bytes, at);
                    let is_name = text[end..].trim_start().starts_with(':');
                    match (is_name, depth) {
                        (true, 1) => member = Some(at),
                        (true, _) => {}
                        (false, _) => found.strings.push(at + 1..end - 1),
                    }
                }
                b'-' | b'0'..=b'9' => {
                    let is_more =
                        |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                    end = at + bytes[at..].iter().take_while(is_more).count();
                    found.numbers.push(at..end);
                }
                _ => {}
            }
            at = end;
        }
        found
    }
}

fn trimmed(text: &str, place: Range<usize>) -> Range<usize> {
    let length = text[place.clone()].trim_end().len();
    place.start..place.start + length
}

/// Behind the quote that ends the string that begins here.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}
