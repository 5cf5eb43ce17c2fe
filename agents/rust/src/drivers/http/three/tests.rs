//! Responses as RFC 9114 allows and forbids them, in pieces of every length.

use super::frame::{kind, put_frame};
use super::{Three, read};
use crate::drivers::http::exchange::{Exchange, Place};
use crate::drivers::http::qpack::{self, entry};
use crate::drivers::http::statement::Asked;
use crate::program::{Operation, Statement};
use crate::xxh3::xxh3_64_with_seed;

fn asked(text: &str) -> Asked {
    let statement = Statement { sql: text.into(), parameters: Vec::new(), ..Statement::default() };
    Asked::read(&statement, "/", "").unwrap()
}

fn place() -> Place {
    Place { authority: "localhost".into(), scheme: "https" }
}

/// A head of these statuses' entries and fields.
fn head(status: usize, length: Option<&str>) -> Vec<u8> {
    let mut section = qpack::PREFIX.to_vec();
    qpack::put_entry(status, &mut section);
    if let Some(length) = length {
        qpack::put_field(entry::CONTENT_LENGTH, length.as_bytes(), &mut section);
    }
    frame(kind::HEADERS, &section)
}

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_frame(kind, payload, &mut bytes);
    bytes
}

const INFORMATION: usize = 24;
const OK: usize = 25;

/// Status and hash of a response to a GET that arrives in these pieces, or the error's code.
fn answer(pieces: &[&[u8]]) -> Result<(u16, u64), String> {
    let read = read(&[], pieces).map(|(status, hash, _)| (status, hash));
    read.map_err(|error| error.split(':').next().unwrap_or_default().to_string())
}

fn trailer() -> Vec<u8> {
    let mut section = qpack::PREFIX.to_vec();
    qpack::put_field(entry::USER_AGENT, b"x", &mut section);
    frame(kind::HEADERS, &section)
}

#[test]
fn a_response_is_the_same_however_it_is_cut() {
    let body = b"0123456789".repeat(20);
    let bytes = [
        head(INFORMATION, None),
        frame(0x21, b"reserved"),
        head(OK, Some("200")),
        frame(kind::DATA, &body[..150]),
        frame(kind::DATA, b""),
        frame(0x40, b""),
        frame(kind::DATA, &body[150..]),
        trailer(),
    ]
    .concat();
    let wanted = (200, xxh3_64_with_seed(&body, 200));
    assert_eq!(answer(&[&bytes]).unwrap(), wanted);
    for cut in 0..=bytes.len() {
        assert_eq!(answer(&[&bytes[..cut], &bytes[cut..]]).unwrap(), wanted, "{cut}");
    }
    for length in 1..40 {
        let pieces: Vec<&[u8]> = bytes.chunks(length).collect();
        assert_eq!(answer(&pieces).unwrap(), wanted, "pieces of {length}");
    }
}

#[test]
fn a_response_that_ends_too_early_is_refused() {
    let bytes = [head(OK, Some("10")), frame(kind::DATA, b"0123456789")].concat();
    assert!(answer(&[&bytes]).is_ok());
    for cut in 0..bytes.len() {
        assert_eq!(answer(&[&bytes[..cut]]).unwrap_err(), "closed-early", "{cut}");
    }
}

#[test]
fn what_the_standard_forbids_is_refused_however_it_is_cut() {
    let ok = head(OK, None);
    for bad in [
        frame(kind::DATA, b"early"),
        [&ok[..], &frame(kind::SETTINGS, b"")].concat(),
        [&ok[..], &frame(kind::GOAWAY, b"\0")].concat(),
        [&ok[..], &frame(5, b"\0")].concat(),
        [&ok[..], &frame(6, b"\0")].concat(),
        [&ok[..], &trailer(), &frame(kind::DATA, b"late")].concat(),
        [&ok[..], &trailer(), &trailer()].concat(),
        [&ok[..], &ok].concat(),
        [head(OK, Some("3")), frame(kind::DATA, b"four")].concat(),
        [head(65, Some("x"))].concat(),
        frame(kind::HEADERS, b"\x00\x00\x80"),
        frame(kind::HEADERS, b""),
        head(INFORMATION, None).repeat(102),
        [&ok[..], &frame(0x21, b"").repeat(1001)].concat(),
    ] {
        for length in [1, 2, 3, 7, bad.len()] {
            let pieces: Vec<&[u8]> = bad.chunks(length).collect();
            assert_eq!(answer(&pieces).unwrap_err(), "malformed", "{bad:02x?} by {length}");
        }
    }
}

#[test]
fn a_request_is_frames_whose_section_reads_back() {
    for (text, body) in [("GET /a", &b""[..]), ("POST /a {\"b\":1}", b"{\"b\":1}"), ("DELETE /a", b"")] {
        let request = Three::compile(asked(text), &place(), false);
        let bytes = Three::fixed(&request).unwrap();
        let mut rest = bytes;
        let (kind, length) = super::frame::header(&mut rest).unwrap();
        assert_eq!(kind, kind::HEADERS);
        let (section, data) = rest.split_at(length as usize);
        let mut fields = 0;
        qpack::decode(section, &mut Vec::new(), |_, _| fields += 1).unwrap();
        assert!(fields >= 6, "{fields}");
        let wanted = if body.is_empty() { Vec::new() } else { frame(kind::DATA, body) };
        assert_eq!(data, wanted);
        let mut again = Vec::new();
        Three::default().put(&request, &Operation::default(), &mut again);
        assert_eq!(again, bytes);
    }
}

#[test]
fn a_goodbye_ends_the_connection_after_the_response() {
    let mut three = Three::default();
    assert!(three.keep());
    three.aside(0, b"\x00\x04\x00\x07\x01\x04", false).unwrap();
    assert!(!three.keep());
}
