//! A body compressed by gzip, as what it holds: compressing the same content twice gives other bytes,
//! because a header of gzip tells the time.

use std::io::Read;

use flate2::bufread::GzDecoder;

/// Largest content that is looked at, in bytes.
pub(crate) const GZIP_CONTENT_BYTES_MAX: usize = 16 << 20;
/// How many times larger than its compressed form content may be, to be looked at.
pub(crate) const GZIP_RATIO_MAX: usize = 128;

/// What was compressed; `None` if it is not one whole stream of gzip with nothing behind it, or is
/// more than somebody who compresses requests would send.
pub(crate) fn content(body: &[u8]) -> Option<Vec<u8>> {
    let most = most(body.len());
    let mut content = Vec::new();
    let mut reader = GzDecoder::new(body).take(u64::try_from(most).ok()?.saturating_add(1));
    reader.read_to_end(&mut content).ok()?;
    let nothing_behind = reader.into_inner().into_inner().is_empty();
    (content.len() <= most && nothing_behind).then_some(content)
}

/// The most content that is looked at in so many compressed bytes.
pub(crate) fn most(compressed: usize) -> usize {
    compressed.saturating_mul(GZIP_RATIO_MAX).min(GZIP_CONTENT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, GzBuilder};

    use super::*;

    fn gzip(content: &[u8], time: u32) -> Vec<u8> {
        let mut writer = GzBuilder::new().mtime(time).write(Vec::new(), Compression::best());
        writer.write_all(content).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn one_whole_stream_is_its_content() {
        let (one, other) = (gzip(b"100", 1), gzip(b"100", 2));
        assert_ne!(one, other);
        assert_eq!(content(&one).as_deref(), Some(&b"100"[..]));
        assert_eq!(content(&other), content(&one));
    }

    #[test]
    fn what_is_not_one_whole_stream_has_no_content() {
        let whole = gzip(b"100", 0);
        let mut wrong_sum = whole.clone();
        wrong_sum[whole.len() - 8] ^= 1;
        let two = [whole.clone(), whole.clone()].concat();
        let padded = [&whole[..], b"\0"].concat();
        for broken in [&b""[..], b"100", &whole[..whole.len() - 1], &wrong_sum, &two, &padded] {
            assert_eq!(content(broken), None, "{}", broken.escape_ascii());
        }
    }

    #[test]
    fn what_swells_beyond_the_bounds_is_not_looked_at() {
        let bomb = gzip(&vec![0; 4 << 20], 0);
        assert!(bomb.len() * GZIP_RATIO_MAX < 4 << 20);
        assert_eq!(content(&bomb), None);
        let mut noise = vec![0; GZIP_CONTENT_BYTES_MAX + 1];
        noise.iter_mut().enumerate().for_each(|(at, byte)| *byte = at.to_le_bytes()[at % 2]);
        let large = gzip(&noise, 0);
        assert!(large.len() * GZIP_RATIO_MAX > noise.len());
        assert_eq!(content(&large), None);
        assert_eq!(
            content(&gzip(&noise[..1 << 20], 0)).map(|content| content.len()),
            Some(1 << 20)
        );
    }
}
