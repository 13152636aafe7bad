//! A key as a column.

/// A key as stored: most clients send UUIDs, which take 16 bytes instead of 36.
pub(crate) enum KeyColumn<'a> {
    Text(&'a str),
    Uuid([u8; 16]),
}

const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl<'a> KeyColumn<'a> {
    pub(crate) fn of(key: &'a str) -> Self {
        let bytes = Self::uuid(key.as_bytes());
        bytes.map_or(Self::Text(key), Self::Uuid)
    }

    /// Only the spelling that [`spell`] gives back.
    fn uuid(key: &[u8]) -> Option<[u8; 16]> {
        if key.len() != 36 || HYPHENS.iter().any(|at| key[*at] != b'-') {
            return None;
        }
        let mut uuid = [0; 16];
        let mut digits = 0;
        for (at, digit) in key.iter().enumerate() {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ if HYPHENS.contains(&at) => continue,
                _ => return None,
            };
            uuid[digits / 2] = uuid[digits / 2] << 4 | value;
            digits += 1;
        }
        (digits == 32).then_some(uuid)
    }
}

/// The usual spelling of a UUID.
pub(crate) fn spell(uuid: &[u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(36);
    for byte in uuid {
        if HYPHENS.contains(&text.len()) {
            text.push('-');
        }
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}
