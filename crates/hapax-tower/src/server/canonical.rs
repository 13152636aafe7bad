//! JSON in one spelling, in the manner of RFC 8785, so that equal values have equal fingerprints.
//!
//! Unlike the RFC, numbers are compared as exact decimals: two amounts of money that a floating
//! point number cannot tell apart are still two amounts.

/// Deepest nesting that is read.
const DEPTH_MAX: usize = 64;
/// Largest decimal exponent of a number, in either direction: a double holds every such number.
const EXPONENT_MAX: i64 = 307;

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

/// The one spelling of this JSON text, without the members at these JSON pointers.
pub fn canonical_json(text: &[u8], ignored: &[String]) -> Result<Vec<u8>, NotCanonical> {
    let text = str::from_utf8(text).map_err(|e| NotCanonical::NotJson { at: e.valid_up_to() })?;
    let mut reader = Reader { text, at: 0, depth: 0, pointer: String::new(), ignored };
    let mut out = Vec::with_capacity(text.len());
    reader.value(&mut out)?;
    reader.space();
    if reader.at < text.len() { Err(reader.not_json()) } else { Ok(out) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    pointer: String,
    ignored: &'a [String],
}

impl<'a> Reader<'a> {
    fn value(&mut self, out: &mut Vec<u8>) -> Result<(), NotCanonical> {
        self.space();
        match self.peek() {
            Some(b'{') => self.nested(out, Self::object),
            Some(b'[') => self.nested(out, Self::array),
            Some(b'"') => {
                let text = self.string()?;
                spell(&text, out);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(out),
            _ => {
                let words = ["true", "false", "null"];
                let word = words.into_iter().find(|word| self.rest().starts_with(word));
                let word = word.ok_or_else(|| self.not_json())?;
                self.at += word.len();
                out.extend_from_slice(word.as_bytes());
                Ok(())
            }
        }
    }

    fn nested(
        &mut self,
        out: &mut Vec<u8>,
        read: fn(&mut Self, &mut Vec<u8>) -> Result<(), NotCanonical>,
    ) -> Result<(), NotCanonical> {
        if self.depth == DEPTH_MAX {
            return Err(NotCanonical::TooDeep { at: self.at });
        }
        self.depth += 1;
        self.at += 1;
        let read = read(self, out);
        self.depth -= 1;
        read
    }

    fn object(&mut self, out: &mut Vec<u8>) -> Result<(), NotCanonical> {
        let mut members: Vec<(Vec<u16>, String, Option<Vec<u8>>)> = Vec::new();
        while !self.ends(b'}', members.is_empty())? {
            let name = self.string()?;
            self.space();
            self.expect(b':')?;
            let parent = self.pointer.len();
            self.pointer.push('/');
            self.pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            let mut value = Vec::new();
            self.value(&mut value)?;
            let counts = !self.ignored.contains(&self.pointer);
            self.pointer.truncate(parent);
            members.push((name.encode_utf16().collect(), name, counts.then_some(value)));
        }
        members.sort_by(|one, other| one.0.cmp(&other.0));
        if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(NotCanonical::DuplicateMember { at: self.at });
        }
        out.push(b'{');
        let counting = members.iter().filter_map(|(_, name, value)| Some((name, value.as_ref()?)));
        for (at, (name, value)) in counting.enumerate() {
            if at > 0 {
                out.push(b',');
            }
            spell(name, out);
            out.push(b':');
            out.extend_from_slice(value);
        }
        out.push(b'}');
        Ok(())
    }

    fn array(&mut self, out: &mut Vec<u8>) -> Result<(), NotCanonical> {
        out.push(b'[');
        let mut first = true;
        while !self.ends(b']', first)? {
            if !first {
                out.push(b',');
            }
            first = false;
            self.value(out)?;
        }
        out.push(b']');
        Ok(())
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

    fn string(&mut self) -> Result<String, NotCanonical> {
        let start = self.at;
        self.expect(b'"')?;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.at = self.text.len().min(self.at + 2),
                Some(_) => self.at += 1,
                None => return Err(self.not_json()),
            }
        }
        self.at += 1;
        let literal = self.text.get(start..self.at).ok_or(NotCanonical::NotJson { at: start })?;
        serde_json::from_str(literal).map_err(|_| NotCanonical::NotJson { at: start })
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Result<(), NotCanonical> {
        let negative = self.take(b'-');
        let whole = self.digits()?;
        if whole.len() > 1 && whole.starts_with('0') {
            return Err(self.not_json());
        }
        let fraction = if self.take(b'.') { self.digits()? } else { "" };
        let mut exponent = 0;
        if self.take(b'e') || self.take(b'E') {
            let sign = if self.take(b'-') { "-" } else { "" };
            if sign.is_empty() {
                self.take(b'+');
            }
            let digits = self.digits()?;
            exponent = format!("{sign}{digits}").parse::<i32>().map_err(|_| self.out_of_range())?;
        }
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0').trim_end_matches('0');
        if digits.is_empty() {
            out.push(b'0');
            return Ok(());
        }
        let places = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
        let dropped = places(&all) - places(all.trim_end_matches('0'));
        let power = i64::from(exponent) - places(fraction) + dropped;
        let magnitude = power + places(digits) - 1;
        if magnitude.abs() > EXPONENT_MAX {
            return Err(self.out_of_range());
        }
        if negative {
            out.push(b'-');
        }
        out.extend_from_slice(digits.as_bytes());
        if power != 0 {
            out.extend_from_slice(format!("e{power}").as_bytes());
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

fn spell(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
}
