//! Headers as bytes: a version, then each name and value with its length before it.

use bytes::Bytes;

use crate::outcome::Header;

const VERSION: u8 = 1;

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

/// The headers that were kept as these bytes; `None` if they were not written by
/// [`encode_headers`] of this version.
pub fn decode_headers(bytes: &[u8]) -> Option<Vec<Header>> {
    let (version, mut rest) = bytes.split_first()?;
    if *version != VERSION {
        return None;
    }
    let mut headers = Vec::new();
    while !rest.is_empty() {
        let name = part(&mut rest)?;
        let value = Bytes::copy_from_slice(part(&mut rest)?);
        headers.push(Header { name: String::from_utf8(name.to_vec()).ok()?, value });
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
    fn what_was_not_written_here_is_refused() {
        for bytes in [&b""[..], b"\x02", b"\x01\x00", b"\x01\x00\x00\x00\x01a", b"\x01\0\0\0\x05a"]
        {
            assert_eq!(decode_headers(bytes), None, "{bytes:?}");
        }
    }
}
