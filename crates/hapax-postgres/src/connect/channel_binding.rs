//! What ties a password's proof to the connection it is made on: the hash of the server's certificate.
//!
//! `tls-server-end-point` of RFC 5929: by the hash of the certificate's signature, or SHA-256 where that
//! is MD5 or SHA-1. A certificate whose signature names no hash (Ed25519) has none, for servers alike.

use sha2::{Digest, Sha256, Sha384, Sha512};

/// What a server with this certificate binds to.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    Some(match signature_hash(certificate)? {
        SignatureHash::Sha256 => Sha256::digest(certificate).to_vec(),
        SignatureHash::Sha384 => Sha384::digest(certificate).to_vec(),
        SignatureHash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignatureHash {
    Sha256,
    Sha384,
    Sha512,
}

const SEQUENCE: u8 = 0x30;
const IDENTIFIER: u8 = 0x06;
const HASH_OF_PSS: u8 = 0xa0;

/// Names of signatures, and the hash that is in each.
const SIGNATURES: &[(&[u8], SignatureHash)] = &[
    // RSA with MD5, SHA-1, SHA-256, SHA-384 and SHA-512.
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04", SignatureHash::Sha256),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05", SignatureHash::Sha256),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b", SignatureHash::Sha256),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c", SignatureHash::Sha384),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d", SignatureHash::Sha512),
    // ECDSA with SHA-1, SHA-256, SHA-384 and SHA-512.
    (b"\x2a\x86\x48\xce\x3d\x04\x01", SignatureHash::Sha256),
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x02", SignatureHash::Sha256),
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x03", SignatureHash::Sha384),
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x04", SignatureHash::Sha512),
];
/// RSA-PSS, which names its hash beside.
const PSS: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a";
const HASHES: &[(&[u8], SignatureHash)] = &[
    (b"\x60\x86\x48\x01\x65\x03\x04\x02\x01", SignatureHash::Sha256),
    (b"\x60\x86\x48\x01\x65\x03\x04\x02\x02", SignatureHash::Sha384),
    (b"\x60\x86\x48\x01\x65\x03\x04\x02\x03", SignatureHash::Sha512),
];

fn signature_hash(certificate: &[u8]) -> Option<SignatureHash> {
    let (whole, _) = element(certificate, SEQUENCE)?;
    let (_, after_the_signed_part) = element(whole, SEQUENCE)?;
    let (algorithm, _) = element(after_the_signed_part, SEQUENCE)?;
    let (name, parameters) = element(algorithm, IDENTIFIER)?;
    if name != PSS {
        return known(SIGNATURES, name);
    }
    let (parameters, _) = element(parameters, SEQUENCE)?;
    // Without one it is SHA-1.
    let Some((hash, _)) = element(parameters, HASH_OF_PSS) else {
        return Some(SignatureHash::Sha256);
    };
    let (hash, _) = element(hash, SEQUENCE)?;
    let (name, _) = element(hash, IDENTIFIER)?;
    known(HASHES, name)
}

fn known(names: &[(&[u8], SignatureHash)], name: &[u8]) -> Option<SignatureHash> {
    names.iter().find(|(known, _)| *known == name).map(|(_, hash)| *hash)
}

/// The content of the element of this kind that the bytes begin with, and what follows it.
fn element(bytes: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk()?;
    if found != kind {
        return None;
    }
    if first < 0x80 {
        return rest.split_at_checked(first.into());
    }
    let (length, rest) = rest.split_at_checked((first & 0x7f).into())?;
    if length.len() > 4 {
        return None;
    }
    let length = length.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate without what is signed, which nobody looks at here.
    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let signed = [SEQUENCE, 0x82, 0x01, 0x00].iter().copied().chain([0; 256]);
        let content: Vec<u8> = signed.chain(algorithm.iter().copied()).collect();
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [SEQUENCE, 0x82].into_iter().chain(length).chain(content).collect()
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let named = |name: &[u8], rest: &[u8]| {
            let length = u8::try_from(2 + name.len() + rest.len()).unwrap();
            let name_length = u8::try_from(name.len()).unwrap();
            [&[SEQUENCE, length, IDENTIFIER, name_length][..], name, rest].concat()
        };
        for (name, hash) in SIGNATURES {
            let found = signature_hash(&certificate(&named(name, &[0x05, 0x00])));
            assert_eq!(found, Some(*hash), "{name:x?}");
        }
        for (name, hash) in HASHES {
            let inner = named(name, &[]);
            let tagged = [&[HASH_OF_PSS, u8::try_from(inner.len()).unwrap()][..], &inner].concat();
            let parameters =
                [&[SEQUENCE, u8::try_from(tagged.len()).unwrap()][..], &tagged].concat();
            let found = signature_hash(&certificate(&named(PSS, &parameters)));
            assert_eq!(found, Some(*hash), "{name:x?}");
        }
        let ed25519 = named(b"\x2b\x65\x70", &[]);
        assert_eq!(signature_hash(&certificate(&ed25519)), None);
    }

    #[test]
    fn what_is_no_certificate_binds_to_nothing() {
        for bytes in [&b""[..], b"\x30", b"\x30\x82", b"\x30\x84\xff\xff\xff\xff", b"\x30\x00"] {
            assert_eq!(end_point(bytes), None, "{bytes:x?}");
        }
    }
}
