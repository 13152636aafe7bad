//! JSON in one spelling, in the manner of RFC 8785, so that equal values have equal fingerprints.
//!
//! Unlike the RFC, numbers are compared as exact decimals: two amounts of money that a floating
//! point number cannot tell apart are still two amounts.

use std::{borrow::Cow, cmp::Ordering, fmt::Write, io};

use crate::server::comparison::member_order::{Mark, MemberOrder, Stretch};

/// Deepest nesting that is read.
const DEPTH_MAX: usize = 64;
/// Largest decimal exponent of a number, in either direction: a double holds every such number.
const EXPONENT_MAX: i64 = 307;

/// How many members there is room for from the start.
const USUAL_MEMBERS: usize = 16;

/// Why a text has no canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCanonical {
    /// It is not JSON.
    #[error("it is not JSON from byte {at} on")]
    NotJson {
        /// Where it stops being JSON, in bytes.
        at: usize,
    },
    /// An object names a member twice, and readers disagree which one counts.
    #[error("the object that ends at byte {at} names a member twice")]
    DuplicateMember {
        /// Where the object ends, in bytes.
        at: usize,
    },
    /// It is nested too deeply.
    #[error("it is nested more than {DEPTH_MAX} deep at byte {at}")]
    TooDeep {
        /// Where, in bytes.
        at: usize,
    },
    /// A number is too large or too small for most readers.
    #[error("the number before byte {at} is out of range")]
    OutOfRange {
        /// Where the number ends, in bytes.
        at: usize,
    },
}

/// The one spelling of this JSON text, without the members and elements at these JSON pointers.
///
/// Takes time and room in proportion to the text, and a little more to sort members.
///
/// ```
/// use hapax_tower::canonical_json;
///
/// let one = canonical_json(br#"{"cents": 1e2, "to": "ada"}"#, &[])?;
/// assert_eq!(one, canonical_json(br#"{"to":"ada","cents":100}"#, &[])?);
/// # Ok::<(), hapax_tower::NotCanonical>(())
/// ```
pub fn canonical_json(text: &[u8], ignored: &[String]) -> Result<Vec<u8>, NotCanonical> {
    // What is no JSON at all is not looked through.
    let first = text.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    if let Some(at) = first
        && !matches!(text[at], b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n')
    {
        return Err(NotCanonical::NotJson { at });
    }
    let text = str::from_utf8(text).map_err(|e| NotCanonical::NotJson { at: e.valid_up_to() })?;
    let mut reader = JsonReader {
        text,
        at: 0,
        depth: 0,
        pointer: String::new(),
        ignored,
        out: Vec::with_capacity(text.len()),
        members: Vec::with_capacity(USUAL_MEMBERS),
        order: MemberOrder::with_room_for(USUAL_MEMBERS),
    };
    reader.value()?;
    reader.space();
    if reader.at < text.len() { Err(reader.not_json()) } else { Ok(reader.order.apply(reader.out)) }
}

struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Where in the document this is; kept only where something is ignored.
    pointer: String,
    ignored: &'a [String],
    /// What was read in its one spelling, but for the order of members.
    out: Vec<u8>,
    /// The members of the objects that are being read, the innermost last.
    members: Vec<Member<'a>>,
    /// Which of the objects that were read have members to be moved.
    order: MemberOrder,
}

/// A member of an object that has been spelled.
struct Member<'a> {
    name: Cow<'a, str>,
    /// Where it is; `None` if it is ignored.
    spelled: Option<Stretch>,
}

impl<'a> JsonReader<'a> {
    fn value(&mut self) -> Result<(), NotCanonical> {
        self.space();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => {
                let text = self.string()?;
                spell(&text, &mut self.out);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                let words = ["true", "false", "null"];
                let word = words.into_iter().find(|word| self.rest().starts_with(word));
                let word = word.ok_or_else(|| self.not_json())?;
                self.at += word.len();
                self.out.extend_from_slice(word.as_bytes());
                Ok(())
            }
        }
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<(), NotCanonical>,
    ) -> Result<(), NotCanonical> {
        if self.depth == DEPTH_MAX {
            return Err(NotCanonical::TooDeep { at: self.at });
        }
        self.depth += 1;
        self.at += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn object(&mut self) -> Result<(), NotCanonical> {
        let (first, opened) = (self.members.len(), self.order.mark(self.out.len()));
        self.order.open(opened);
        self.out.push(b'{');
        let (mut any_kept, mut in_order) = (false, true);
        while !self.ends(b'}', self.members.len() == first)? {
            let name = self.string()?;
            self.space();
            self.expect(b':')?;
            let parent = self.enter(&name);
            let before = self.order.mark(self.out.len());
            if any_kept {
                self.out.push(b',');
            }
            let began = self.order.mark(self.out.len());
            spell(&name, &mut self.out);
            self.out.push(b':');
            self.value()?;
            let spelled = self.leave(parent, before);
            any_kept |= spelled;
            let spelled = spelled.then(|| MemberOrder::stretch(began, self.out.len()));
            if let Some(last) = self.members[first..].last() {
                in_order &= order(&last.name, &name) == Ordering::Less;
            }
            self.members.push(Member { name, spelled });
        }
        self.out.push(b'}');
        if in_order {
            self.members.truncate(first);
            self.order.close_in_order(opened, self.out.len());
            return Ok(());
        }
        let members = &mut self.members[first..];
        members.sort_unstable_by(|one, other| order(&one.name, &other.name));
        if members.windows(2).any(|pair| pair[0].name == pair[1].name) {
            return Err(NotCanonical::DuplicateMember { at: self.at });
        }
        let members = self.members.drain(first..).filter_map(|member| member.spelled);
        self.order.close(opened, self.out.len(), members);
        Ok(())
    }

    fn array(&mut self) -> Result<(), NotCanonical> {
        self.out.push(b'[');
        let (mut any_kept, mut index) = (false, 0);
        while !self.ends(b']', index == 0)? {
            let parent = self.enter_element(index);
            index += 1;
            let before = self.order.mark(self.out.len());
            if any_kept {
                self.out.push(b',');
            }
            self.value()?;
            any_kept |= self.leave(parent, before);
        }
        self.out.push(b']');
        Ok(())
    }

    /// Goes down to a member, and says how long the pointer to its object is.
    fn enter(&mut self, name: &str) -> usize {
        let parent = self.pointer.len();
        if !self.ignored.is_empty() {
            self.pointer.push('/');
            if name.contains(['~', '/']) {
                self.pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            } else {
                self.pointer.push_str(name);
            }
        }
        parent
    }

    /// Goes down to an element, and says how long the pointer to its array is.
    fn enter_element(&mut self, index: usize) -> usize {
        let parent = self.pointer.len();
        if !self.ignored.is_empty() {
            // Writing to memory does not fail.
            let _ = write!(self.pointer, "/{index}");
        }
        parent
    }

    /// Goes up from what began at the mark, and says whether it counts; otherwise it is unwritten.
    fn leave(&mut self, parent: usize, before: Mark) -> bool {
        let counts = !self.ignored.contains(&self.pointer);
        self.pointer.truncate(parent);
        if !counts {
            self.out.truncate(before.at());
            self.order.forget(before);
        }
        counts
    }

    /// Whether the object or array ends here; otherwise what separates its parts is passed.
    fn ends(&mut self, close: u8, first: bool) -> Result<bool, NotCanonical> {
        self.space();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(true);
        }
        if !first {
            self.expect(b',')?;
            self.space();
        }
        Ok(false)
    }

    /// The text of a string; only one without escapes is borrowed.
    fn string(&mut self) -> Result<Cow<'a, str>, NotCanonical> {
        let start = self.at;
        self.expect(b'"')?;
        let text = self.text;
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\') || *byte < b' ';
        let rest = &text.as_bytes()[self.at..];
        self.at +=
            rest.iter().position(is_special).ok_or(NotCanonical::NotJson { at: text.len() })?;
        if self.take(b'"') {
            return Ok(Cow::Borrowed(&text[start + 1..self.at - 1]));
        }
        self.escaped_string(start)
    }

    /// A string with escapes, or with characters that should have been.
    fn escaped_string(&mut self, start: usize) -> Result<Cow<'a, str>, NotCanonical> {
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.at = self.text.len().min(self.at + 2),
                Some(_) => self.at += 1,
                None => return Err(self.not_json()),
            }
        }
        self.at += 1;
        let not_json = NotCanonical::NotJson { at: start };
        let literal = self.text.get(start..self.at).ok_or(not_json)?;
        serde_json::from_str(literal).map(Cow::Owned).map_err(|_| not_json)
    }

    fn number(&mut self) -> Result<(), NotCanonical> {
        let negative = self.take(b'-');
        let whole = self.digits()?;
        if whole.len() > 1 && whole.starts_with('0') {
            return Err(self.not_json());
        }
        let fraction = if self.take(b'.') { self.digits()? } else { "" };
        let mut exponent = 0;
        if self.take(b'e') || self.take(b'E') {
            let shrinks = self.take(b'-');
            if !shrinks {
                self.take(b'+');
            }
            let digits = self.digits()?.parse::<i32>().map_err(|_| self.out_of_range())?;
            exponent = if shrinks { -digits } else { digits };
        }
        let out = &mut self.out;
        let before = out.len();
        if negative {
            out.push(b'-');
        }
        let start = out.len();
        // Only a number below one starts with zeros, and with one before its fraction.
        let significant = if whole == "0" { fraction.trim_start_matches('0') } else { fraction };
        if whole != "0" {
            out.extend_from_slice(whole.as_bytes());
        }
        out.extend_from_slice(significant.as_bytes());
        let zeros = out[start..].iter().rev().take_while(|digit| **digit == b'0').count();
        out.truncate(out.len() - zeros);
        if out.len() == start {
            out.truncate(before);
            out.push(b'0');
            return Ok(());
        }
        let places = |places: usize| i64::try_from(places).unwrap_or(i64::MAX);
        let power = i64::from(exponent) - places(fraction.len()) + places(zeros);
        let magnitude = power + places(out.len() - start) - 1;
        if magnitude.abs() > EXPONENT_MAX {
            return Err(self.out_of_range());
        }
        if power != 0 {
            // Writing to memory does not fail.
            let _ = io::Write::write_fmt(&mut self.out, format_args!("e{power}"));
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<&'a str, NotCanonical> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.not_json()) } else { Ok(&self.text[start..self.at]) }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), NotCanonical> {
        if self.take(byte) { Ok(()) } else { Err(self.not_json()) }
    }

    fn not_json(&self) -> NotCanonical {
        NotCanonical::NotJson { at: self.at }
    }

    fn out_of_range(&self) -> NotCanonical {
        NotCanonical::OutOfRange { at: self.at }
    }
}

/// Names are ordered as UTF-16, which differs from their bytes beyond ASCII alone.
fn order(one: &str, other: &str) -> Ordering {
    let mut pairs = one.bytes().zip(other.bytes());
    match pairs.find(|(one, other)| one != other) {
        None => one.len().cmp(&other.len()),
        Some((byte, against)) if byte.is_ascii() || against.is_ascii() => byte.cmp(&against),
        Some(_) => one.encode_utf16().cmp(other.encode_utf16()),
    }
}

/// A text as it was read: what was borrowed has nothing to escape.
#[expect(clippy::ptr_arg, reason = "whether it was borrowed is what counts")]
fn spell(text: &Cow<'_, str>, out: &mut Vec<u8>) {
    let is_special = |byte: u8| byte < b' ' || matches!(byte, b'"' | b'\\');
    match text {
        Cow::Owned(text) if text.bytes().any(is_special) => {
            out.extend_from_slice(serde_json::Value::from(text.as_str()).to_string().as_bytes());
        }
        Cow::Owned(_) | Cow::Borrowed(_) => {
            out.push(b'"');
            out.extend_from_slice(text.as_bytes());
            out.push(b'"');
        }
    }
}
