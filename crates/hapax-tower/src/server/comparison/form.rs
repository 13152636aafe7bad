//! The fields of a form in one spelling (`application/x-www-form-urlencoded`).
//!
//! Only what no reader can tell apart is made alike: `%2f` and `%2F`, `%41` and `A`, `+` and `%20`. The
//! order of fields counts, and so does whether something that can separate them was escaped.

use crate::server::requests::percent;

/// The same fields in one spelling; `None` if an escape is none.
pub(crate) fn canonical(body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => out.extend_from_slice(b"%20"),
            b'%' => {
                let (&[high, low], after) = rest.split_first_chunk()?;
                let escaped = percent::decoded(high, low)?;
                rest = after;
                if is_plain(escaped) {
                    out.push(escaped);
                } else {
                    out.extend(percent::respelled(high, low));
                }
            }
            plain => out.push(plain),
        }
    }
    Some(out)
}

/// Whether every reader takes the byte for itself, escaped or not.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'&' | b'=' | b';' | b'+' | b'%')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The fields as a reader gets them whose separators these are.
    fn fields(body: &[u8], separators: &[u8]) -> Vec<Vec<u8>> {
        let fields = body.split(|byte| separators.contains(byte));
        let read = |field: &[u8]| {
            let (mut read, mut rest) = (Vec::new(), field.iter());
            while let Some(byte) = rest.next() {
                let digits = |rest: &mut std::slice::Iter<'_, u8>| {
                    let text = [*rest.next()?, *rest.next()?];
                    u8::from_str_radix(str::from_utf8(&text).ok()?, 16).ok()
                };
                // What separates a name from its value is told apart from the same, escaped.
                read.push(match byte {
                    b'+' => b' ',
                    b'%' => digits(&mut rest).unwrap(),
                    b'=' => 0,
                    plain => *plain,
                });
            }
            read
        };
        fields.map(read).collect()
    }

    proptest! {
        #[test]
        fn forms_that_are_alike_are_read_alike(one in PIECES, other in PIECES) {
            let canonical = [&one, &other].map(|form| canonical(form.as_bytes()).unwrap());
            for separators in [&b"&"[..], b"&;"] {
                let [one, other] = [&one, &other].map(|form| fields(form.as_bytes(), separators));
                prop_assert!(canonical[0] != canonical[1] || one == other);
            }
        }
    }

    /// Few and short, so that many are alike.
    const PIECES: &str = "(a|b|%61|%26|&|=|%3D|%3d|;|%3B|\\+|%20|%2B){0,4}";

    #[test]
    fn fields_are_alike_only_where_every_reader_reads_them_alike() {
        let one = canonical(b"to=Zo%c3%ab+M&amount=%31%30&note=a%2Fb").unwrap();
        assert_eq!(canonical(b"to=Zo%C3%AB%20M&amount=10&note=a/b"), Some(one.clone()));
        assert_eq!(canonical(&one), Some(one.clone()));
        for other in [
            &b"amount=10&to=Zo%C3%AB%20M&note=a/b"[..],
            b"to=Zo%C3%AB%20M&amount=10&note=a/b&",
            b"to=Zo%C3%AB%20M&amount=10&note=a/b%26",
            b"to=Zo%C3%AB%20M&amount=1%2B0&note=a/b",
            b"to=Zo\xc3\xab%20M&amount=10&note=a/b",
            b"to=Zo%C3%AB%20M&amount%3D10&note=a/b",
        ] {
            assert_ne!(canonical(other), Some(one.clone()), "{}", other.escape_ascii());
        }
    }

    #[test]
    fn an_escape_that_is_none_makes_it_no_form() {
        for broken in ["a=%", "a=%4", "a=%zz", "a=%+1"] {
            assert_eq!(canonical(broken.as_bytes()), None, "{broken}");
        }
    }
}
