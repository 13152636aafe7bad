//! Headers as bytes: a version, then each name and value with its length before it. Another version says
//! that headers and payload are encrypted together.

use bytes::Bytes;

use crate::outcome::Header;

const VERSION: u8 = 1;
const SEALED_VERSION: u8 = 2;
/// The name of the only header of an encrypted message. No clear header is read under it.
const SEALED_NAME: &str = "\0sealed";
const UNREADABLE_NAME: &str = "\0unreadable";

/// The headers of a message as they are kept.
pub fn encode_headers(headers: &[Header]) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    for header in headers {
        for part in [header.name.as_bytes(), &header.value] {
            let len = u32::try_from(part.len()).unwrap_or(u32::MAX);
            bytes.extend(len.to_be_bytes());
            bytes.extend(part);
        }
    }
    bytes
}

/// What is kept in place of the headers of a message that is encrypted with them.
pub(super) fn encode_sealed_headers() -> Vec<u8> {
    vec![SEALED_VERSION]
}

/// Whether headers that were [read](decode_headers) say that what is kept is encrypted.
pub(super) fn are_sealed(headers: &[Header]) -> bool {
    matches!(headers, [header] if header.name == SEALED_NAME)
}

/// The headers of a message that is encrypted and that nobody can ever decrypt, and why.
pub(super) fn unreadable_headers(why: String) -> Vec<Header> {
    vec![Header { name: UNREADABLE_NAME.to_owned(), value: why.into() }]
}

/// Why nobody can ever decrypt the message with these headers, if that is so.
pub(super) fn unreadable_because(headers: &[Header]) -> Option<&str> {
    let [header] = headers else { return None };
    let is_mark = header.name == UNREADABLE_NAME;
    is_mark.then(|| std::str::from_utf8(&header.value).unwrap_or_default())
}

/// The headers that were kept as these bytes; `None` if they were not written by
/// [`encode_headers`] of this version.
pub fn decode_headers(bytes: &[u8]) -> Option<Vec<Header>> {
    let (version, mut rest) = bytes.split_first()?;
    match (*version, rest.is_empty()) {
        (VERSION, _) => {}
        (SEALED_VERSION, true) => {
            return Some(vec![Header { name: SEALED_NAME.to_owned(), value: Bytes::new() }]);
        }
        (_, _) => return None,
    }
    let mut headers = Vec::new();
    while !rest.is_empty() {
        let name = part(&mut rest)?;
        let value = Bytes::copy_from_slice(part(&mut rest)?);
        let name = std::str::from_utf8(name).ok()?.replace('\0', "\u{fffd}");
        headers.push(Header { name, value });
    }
    Some(headers)
}

fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, behind) = rest.split_first_chunk::<4>()?;
    let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
    let (part, behind) = behind.split_at_checked(len)?;
    *rest = behind;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_as_they_were() {
        let header =
            |name: &str, value: &'static [u8]| Header { name: name.into(), value: value.into() };
        let headers = vec![header("a", b"1"), header("a", b""), header("\u{e9}", b"\x00\xff")];
        assert_eq!(decode_headers(&encode_headers(&headers)), Some(headers));
        assert_eq!(decode_headers(&encode_headers(&[])), Some(Vec::new()));
    }

    #[test]
    fn no_clear_header_is_taken_for_the_mark_of_what_is_encrypted() {
        let marked = decode_headers(&encode_sealed_headers()).unwrap();
        assert!(are_sealed(&marked));
        let clear = decode_headers(&encode_headers(&marked)).unwrap();
        assert!(!are_sealed(&clear), "{clear:?}");
    }

    #[test]
    fn what_was_not_written_here_is_refused() {
        for bytes in [
            &b""[..],
            b"\x03",
            b"\x02\x00",
            b"\x01\x00",
            b"\x01\x00\x00\x00\x01a",
            b"\x01\0\0\0\x05a",
        ] {
            assert_eq!(decode_headers(bytes), None, "{bytes:?}");
        }
    }
}
