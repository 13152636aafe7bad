//! Answers that are none.

use crate::cuts_proxy::How;

/// A name, what is said, and how the connection ends.
pub(crate) type Broken = (&'static str, Vec<u8>, How);

pub(crate) fn broken() -> Vec<Broken> {
    let mut all = cut_short();
    all.extend(malformed());
    all
}

fn cut_short() -> Vec<Broken> {
    let chunks = "transfer-encoding: chunked\r\n\r\n";
    let chunked = |text: &str| said(&format!("{chunks}{text}"));
    vec![
        ("nothing-closed", Vec::new(), How::Fin),
        ("nothing-reset", Vec::new(), How::Rst),
        ("nothing-silent", Vec::new(), How::Silence),
        ("half-a-status-line", b"HTTP/1.1 201".to_vec(), How::Fin),
        ("half-a-header", said("content-len"), How::Fin),
        ("half-a-head", said("content-length: 9\r\n"), How::Rst),
        ("no-end-of-head", said("content-length: 0\r\n"), How::Silence),
        ("no-body", said("content-length: 9\r\n\r\n"), How::Fin),
        ("half-a-body", said("content-length: 9\r\n\r\nrece"), How::Fin),
        ("half-a-body-reset", said("content-length: 9\r\n\r\nrece"), How::Rst),
        ("half-a-body-silent", said("content-length: 9\r\n\r\nrece"), How::Silence),
        ("all-but-a-byte", said("content-length: 9\r\n\r\nreceipt "), How::Fin),
        ("until-close-reset", said("connection: close\r\n\r\nreceipt"), How::Rst),
        ("no-chunk", chunked(""), How::Fin),
        ("half-a-chunk-size", chunked("1"), How::Fin),
        ("half-a-chunk", chunked("9\r\nrece"), How::Fin),
        ("half-a-chunk-reset", chunked("9\r\nrece"), How::Rst),
        ("no-last-chunk", chunked("7\r\nreceipt\r\n"), How::Fin),
        ("half-a-last-chunk", chunked("7\r\nreceipt\r\n0\r\n"), How::Fin),
        ("no-last-chunk-silent", chunked("7\r\nreceipt\r\n"), How::Silence),
    ]
}

fn malformed() -> Vec<Broken> {
    let bytes = |text: &str| text.as_bytes().to_vec();
    let provisional = "HTTP/1.1 102 Processing\r\n\r\n".repeat(500);
    let headers = (0..300).map(|n| format!("x-{n}: 1\r\n")).collect::<String>();
    let chunked = |text: &str| said(&format!("transfer-encoding: chunked\r\n\r\n{text}"));
    vec![
        ("bad-chunk-size", chunked("zz\r\nreceipt\r\n0\r\n\r\n"), How::Fin),
        ("huge-chunk-size", chunked(&format!("{}\r\n", "f".repeat(17))), How::Fin),
        ("chunk-longer-than-said", chunked("3\r\nreceipt\r\n0\r\n\r\n"), How::Fin),
        ("lengths-that-differ", said("content-length: 1\r\ncontent-length: 2\r\n\r\nab"), How::Fin),
        ("length-that-is-none", said("content-length: many\r\n\r\nreceipt"), How::Fin),
        ("negative-length", said("content-length: -1\r\n\r\nreceipt"), How::Fin),
        ("chunks-not-last", said("transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n"), How::Rst),
        ("garbage", bytes("\0\u{1}\u{2} no HTTP at all\r\n\r\n"), How::Fin),
        ("another-protocol", bytes("220 mail.example ESMTP\r\n"), How::Fin),
        ("status-of-letters", bytes("HTTP/1.1 2xx Fine\r\ncontent-length: 0\r\n\r\n"), How::Fin),
        ("status-too-long", bytes("HTTP/1.1 2010 Fine\r\ncontent-length: 0\r\n\r\n"), How::Fin),
        ("version-unknown", bytes("HTTP/9.1 201 Fine\r\ncontent-length: 0\r\n\r\n"), How::Fin),
        ("space-in-a-name", said("content length: 0\r\n\r\n"), How::Fin),
        ("too-many-headers", said(&format!("{headers}content-length: 0\r\n\r\n")), How::Fin),
        ("protocol-not-asked-for", bytes("HTTP/1.1 101 Switch\r\nupgrade: x\r\n\r\n"), How::Fin),
        ("only-provisional", bytes(&provisional), How::Fin),
        ("only-provisional-silent", bytes(&provisional), How::Silence),
    ]
}

fn said(after_status: &str) -> Vec<u8> {
    format!("HTTP/1.1 201 Created\r\n{after_status}").into_bytes()
}
