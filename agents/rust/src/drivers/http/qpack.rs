//! QPACK (RFC 9204) without a dynamic table, which this client doesn't allow: encodes and decodes field sections.

use super::hpack::{Name, integer, plain, put_integer, string};

/// The entries of the static table that matter here; the client never looks at others.
pub mod entry {
    pub const AUTHORITY: usize = 0;
    pub const PATH: usize = 1;
    pub const CONTENT_LENGTH: usize = 4;
    pub const LOCATION: usize = 12;
    pub const DELETE: usize = 16;
    pub const GET: usize = 17;
    pub const HEAD: usize = 18;
    pub const POST: usize = 20;
    pub const PUT: usize = 21;
    pub const HTTPS: usize = 23;
    pub const ACCEPT_ANY: usize = 29;
    pub const BROTLI: usize = 42;
    pub const GZIP: usize = 43;
    pub const CONTENT_TYPE: usize = 44;
    pub const SERVER: usize = 92;
    pub const USER_AGENT: usize = 95;
    /// Names of headers.
    pub const NAMES: [(&str, usize); 7] = [
        ("accept", ACCEPT_ANY),
        ("accept-encoding", 31),
        ("accept-language", 72),
        ("authorization", 84),
        ("content-type", CONTENT_TYPE),
        ("cookie", 5),
        ("user-agent", USER_AGENT),
    ];
}

const STATIC_ENTRIES: usize = 99;
/// `:status` has two stretches of entries.
const STATUSES: [(usize, &[&[u8]]); 2] = [
    (24, &[b"103", b"200", b"304", b"404", b"503"]),
    (63, &[b"100", b"204", b"206", b"302", b"400", b"403", b"421", b"425", b"500"]),
];
/// Values of `content-type`, from its first entry on.
const CONTENT_TYPES: [&[u8]; 11] = [
    b"application/dns-message",
    b"application/javascript",
    b"application/json",
    b"application/x-www-form-urlencoded",
    b"image/gif",
    b"image/jpeg",
    b"image/png",
    b"text/css",
    b"text/html; charset=utf-8",
    b"text/plain",
    b"text/plain;charset=utf-8",
];
/// A section of static entries and literals: it needs no insertions, and has no base.
pub const PREFIX: [u8; 2] = [0, 0];

/// The name of a static entry, and its value if the client looks at it. None: there is no such entry.
fn static_entry(number: usize) -> Option<(Name, &'static [u8])> {
    for (first, values) in STATUSES {
        if let Some(value) = number.checked_sub(first).and_then(|at| values.get(at)) {
            return Some((Name::Status, value));
        }
    }
    match number {
        entry::CONTENT_LENGTH => Some((Name::ContentLength, b"0")),
        entry::LOCATION => Some((Name::Location, b"")),
        entry::SERVER => Some((Name::Server, b"")),
        entry::BROTLI => Some((Name::ContentEncoding, b"br")),
        entry::GZIP => Some((Name::ContentEncoding, b"gzip")),
        entry::CONTENT_TYPE..=54 => Some((Name::ContentType, CONTENT_TYPES[number - entry::CONTENT_TYPE])),
        entry::AUTHORITY | entry::PATH | 15..=23 => Some((Name::Pseudo, b"")),
        0..STATIC_ENTRIES => Some((Name::Other, b"")),
        _ => None,
    }
}

/// Passes every field of a section to `see`; values of `Other` stay encoded. None: the section is malformed.
pub fn decode(section: &[u8], room: &mut Vec<u8>, mut see: impl FnMut(Name, &[u8])) -> Option<()> {
    let mut rest = section;
    // Without insertions the base means nothing.
    if integer(&mut rest, 8)? != 0 {
        return None;
    }
    integer(&mut rest, 7)?;
    while let &[first, ..] = rest {
        let name = match first {
            // An entry of the static table.
            0xc0.. => {
                let (name, value) = static_entry(integer(&mut rest, 6)?)?;
                see(name, value);
                continue;
            }
            // A literal whose name is an entry of the static table.
            0x50..=0x5f | 0x70..=0x7f => static_entry(integer(&mut rest, 4)?)?.0,
            0x20..=0x3f => {
                let (huffman, text) = string(&mut rest, 3)?;
                Name::read(plain(huffman, text, room)?)
            }
            // These refer to the dynamic table.
            _ => return None,
        };
        let (huffman, text) = string(&mut rest, 7)?;
        match name {
            Name::Other => see(name, text),
            _ => see(name, plain(huffman, text, room)?),
        }
    }
    Some(())
}

/// A field that is an entry of the static table.
pub fn put_entry(entry: usize, into: &mut Vec<u8>) {
    put_integer(0xc0, 6, entry, into);
}

/// A field with its name, which is in lower case.
pub fn put_named(name: &[u8], value: &[u8], into: &mut Vec<u8>) {
    put_integer(0x20, 3, name.len(), into);
    into.extend_from_slice(name);
    put_integer(0, 7, value.len(), into);
    into.extend_from_slice(value);
}

/// A field whose name is an entry of the static table.
pub fn put_field(entry: usize, value: &[u8], into: &mut Vec<u8>) {
    put_integer(0x50, 4, entry, into);
    put_integer(0, 7, value.len(), into);
    into.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(section: &[u8]) -> Option<Vec<(Name, String)>> {
        let mut seen = Vec::new();
        decode(section, &mut Vec::new(), |name, value| {
            let value = if name == Name::Other { String::new() } else { String::from_utf8_lossy(value).into_owned() };
            seen.push((name, value));
        })?;
        Some(seen)
    }

    #[test]
    fn a_literal_with_a_static_name_is_written_and_read_as_in_the_standard() {
        // RFC 9204, B.1: `:path: /index.html`.
        let mut section = PREFIX.to_vec();
        put_field(entry::PATH, b"/index.html", &mut section);
        assert_eq!(section, b"\x00\x00\x51\x0b/index.html");
        assert_eq!(fields(&section).unwrap(), [(Name::Pseudo, "/index.html".into())]);
    }

    #[test]
    fn every_status_of_the_static_table_has_its_entry() {
        // RFC 9204, appendix A.
        for (entry, status) in [
            (24, "103"),
            (25, "200"),
            (26, "304"),
            (27, "404"),
            (28, "503"),
            (63, "100"),
            (64, "204"),
            (65, "206"),
            (66, "302"),
            (67, "400"),
            (68, "403"),
            (69, "421"),
            (70, "425"),
            (71, "500"),
        ] {
            let mut section = PREFIX.to_vec();
            put_entry(entry, &mut section);
            assert_eq!(fields(&section).unwrap(), [(Name::Status, status.into())]);
        }
        assert!(static_entry(98).is_some() && static_entry(99).is_none());
    }

    #[test]
    fn names_are_read_however_they_are_written() {
        for (section, wanted) in [
            (&b"\x00\x00\x54\x0212"[..], (Name::ContentLength, "12")),
            (b"\x00\x00\x74\x0212", (Name::ContentLength, "12")),
            (b"\x00\x00\x5f\x4d\x05nginx", (Name::Server, "nginx")),
            (b"\x00\x00\x27\x01location\x01/", (Name::Location, "/")),
            (b"\x00\x00\x27\x00:status\x03200", (Name::Status, "200")),
            // RFC 7541, C.6.1: "302" in Huffman's code.
            (b"\x00\x00\x5f\x09\x82\x64\x02", (Name::Status, "302")),
            (b"\x00\x80\xc0", (Name::Pseudo, "")),
        ] {
            assert_eq!(fields(section).unwrap(), [(wanted.0, wanted.1.to_string())], "{section:02x?}");
        }
    }

    #[test]
    fn what_refers_to_a_dynamic_table_or_ends_early_is_refused() {
        for bad in [
            &b""[..],
            b"\x00",
            // Insertions are required.
            b"\x01\x00",
            // Indexed, literal with a name, each relative to the base and after it.
            b"\x00\x00\x80",
            b"\x00\x00\x40\x01a",
            b"\x00\x00\x10",
            b"\x00\x00\x00\x01a",
            // Past the static table.
            b"\x00\x00\xff\x24",
            // Cut off.
            b"\x00\x00\x54",
            b"\x00\x00\x54\x021",
            b"\x00\x00\x27\x01loc",
            b"\x00\x00\xff",
        ] {
            assert!(fields(bad).is_none(), "{bad:02x?}");
        }
    }
}
