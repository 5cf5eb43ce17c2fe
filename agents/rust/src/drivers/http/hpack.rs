//! HPACK (RFC 7541) without a dynamic table, which this client doesn't allow: encodes and decodes header blocks. QPACK takes over its
//! integers, strings and Huffman code.

use std::sync::OnceLock;

/// The names in the static table that matter here; the client never looks at others.
const STATUS: usize = 8;
const CONTENT_LENGTH: usize = 28;
const LOCATION: usize = 46;
const SERVER: usize = 54;
const CONTENT_ENCODING: usize = 26;
const CONTENT_TYPE: usize = 31;
const STATIC_ENTRIES: usize = 61;
/// Values of `:status` in entries 8 to 14.
const STATUSES: [&[u8]; 7] = [b"200", b"204", b"206", b"304", b"400", b"404", b"500"];

/// Names of fields that the client reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Name {
    Status,
    ContentLength,
    Location,
    Server,
    ContentType,
    ContentEncoding,
    /// Another pseudo-header field.
    Pseudo,
    Other,
}

impl Name {
    fn of_entry(entry: usize) -> Name {
        match entry {
            STATUS..=14 => Name::Status,
            CONTENT_LENGTH => Name::ContentLength,
            LOCATION => Name::Location,
            SERVER => Name::Server,
            CONTENT_TYPE => Name::ContentType,
            CONTENT_ENCODING => Name::ContentEncoding,
            1..STATUS => Name::Pseudo,
            _ => Name::Other,
        }
    }

    pub fn read(name: &[u8]) -> Name {
        match name {
            b":status" => Name::Status,
            b"content-length" => Name::ContentLength,
            b"location" => Name::Location,
            b"server" => Name::Server,
            b"content-type" => Name::ContentType,
            b"content-encoding" => Name::ContentEncoding,
            [b':', ..] => Name::Pseudo,
            _ => Name::Other,
        }
    }
}

/// Passes every field of a header block to `see`; values of `Other` stay encoded. None: the block is malformed.
#[inline]
pub fn decode(block: &[u8], room: &mut Vec<u8>, mut see: impl FnMut(Name, &[u8])) -> Option<()> {
    let mut rest = block;
    while let &[first, ..] = rest {
        if first & 0x80 != 0 {
            let entry = integer(&mut rest, 7)?;
            let value = entry.checked_sub(STATUS).and_then(|at| STATUSES.get(at));
            match entry {
                1..=STATIC_ENTRIES => see(Name::of_entry(entry), value.copied().unwrap_or_default()),
                _ => return None,
            }
            continue;
        }
        if first & 0xe0 == 0x20 {
            // The table's size update, which can only be zero.
            if integer(&mut rest, 5)? != 0 {
                return None;
            }
            continue;
        }
        let entry = integer(&mut rest, if first & 0x40 != 0 { 6 } else { 4 })?;
        let name = match entry {
            0 => {
                let (huffman, text) = string(&mut rest, 7)?;
                Name::read(plain(huffman, text, room)?)
            }
            1..=STATIC_ENTRIES => Name::of_entry(entry),
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

/// An integer whose first byte has `bits` of it (RFC 7541, 5.1).
#[inline]
pub fn integer(rest: &mut &[u8], bits: u32) -> Option<usize> {
    let (&first, mut left) = rest.split_first()?;
    let most = (1usize << bits) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (&byte, more) = left.split_first()?;
            left = more;
            if shift > 21 {
                return None;
            }
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = left;
    Some(value)
}

/// A string's bytes, and whether they are Huffman-coded. The first byte has `bits` of its length, and the flag before them.
#[inline]
pub fn string<'a>(rest: &mut &'a [u8], bits: u32) -> Option<(bool, &'a [u8])> {
    let huffman = rest.first()? & 1 << bits != 0;
    let length = integer(rest, bits)?;
    let (text, more) = rest.split_at_checked(length)?;
    *rest = more;
    Some((huffman, text))
}

/// A string without its Huffman code.
pub fn plain<'a>(huffman: bool, text: &'a [u8], room: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    if !huffman {
        return Some(text);
    }
    room.clear();
    huffman_decode(text, room)?;
    Some(room)
}

/// Length of each symbol's code (RFC 7541, appendix B): the code is canonical, so the lengths define it.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];
const LONGEST: usize = 30;
const END: u16 = 256;

/// For each length: its first code, the number of codes, and the position of its first symbol in code order.
struct Huffman {
    first: [u32; LONGEST + 1],
    count: [u32; LONGEST + 1],
    begin: [usize; LONGEST + 1],
    symbols: Vec<u16>,
}

fn table() -> &'static Huffman {
    static TABLE: OnceLock<Huffman> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table =
            Huffman { first: [0; LONGEST + 1], count: [0; LONGEST + 1], begin: [0; LONGEST + 1], symbols: Vec::new() };
        let mut code = 0;
        for length in 1..=LONGEST {
            code <<= 1;
            table.first[length] = code;
            table.begin[length] = table.symbols.len();
            table.symbols.extend((0..=END).filter(|symbol| usize::from(LENGTHS[usize::from(*symbol)]) == length));
            table.count[length] = (table.symbols.len() - table.begin[length]) as u32;
            code += table.count[length];
        }
        table
    })
}

fn huffman_decode(text: &[u8], into: &mut Vec<u8>) -> Option<()> {
    let table = table();
    let (mut code, mut length) = (0u32, 0);
    for at in 0..text.len() * 8 {
        code = code << 1 | u32::from(text[at / 8] >> (7 - at % 8) & 1);
        length += 1;
        if length > LONGEST {
            return None;
        }
        let number = code.wrapping_sub(table.first[length]);
        if code >= table.first[length] && number < table.count[length] {
            match table.symbols[table.begin[length] + number as usize] {
                END => return None,
                symbol => into.push(symbol as u8),
            }
            (code, length) = (0, 0);
        }
    }
    // Padding is shorter than a byte and consists of ones.
    (length < 8 && code == (1 << length) - 1).then_some(())
}

/// A field that must not be indexed; its name is an entry of the static table.
pub fn put_field(entry: usize, value: &[u8], into: &mut Vec<u8>) {
    put_integer(0, 4, entry, into);
    put_integer(0, 7, value.len(), into);
    into.extend_from_slice(value);
}

/// A field that must not be indexed, with its name, which is in lower case.
pub fn put_named(name: &[u8], value: &[u8], into: &mut Vec<u8>) {
    put_integer(0, 4, 0, into);
    put_integer(0, 7, name.len(), into);
    into.extend_from_slice(name);
    put_integer(0, 7, value.len(), into);
    into.extend_from_slice(value);
}

/// A field that is an entry of the static table.
pub fn put_entry(entry: usize, into: &mut Vec<u8>) {
    put_integer(0x80, 7, entry, into);
}

/// Appends an integer whose first byte has `bits` of it, behind these flags.
pub fn put_integer(flags: u8, bits: u32, value: usize, into: &mut Vec<u8>) {
    let most = (1usize << bits) - 1;
    if value < most {
        return into.push(flags | value as u8);
    }
    into.push(flags | most as u8);
    let mut left = value - most;
    while left >= 0x80 {
        into.push(left as u8 | 0x80);
        left >>= 7;
    }
    into.push(left as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    fn fields(block: &[u8]) -> Option<Vec<(Name, String)>> {
        let mut seen = Vec::new();
        decode(block, &mut Vec::new(), |name, value| {
            let value = if name == Name::Other { String::new() } else { String::from_utf8_lossy(value).into_owned() };
            seen.push((name, value));
        })?;
        Some(seen)
    }

    #[test]
    fn huffman_code_is_that_of_the_standard() {
        for (hex, text) in [
            ("f1e3c2e5f23a6ba0ab90f4ff", "www.example.com"),
            ("6402", "302"),
            ("aec3771a4b", "private"),
            ("d07abe941054d444a8200595040b8166e082a62d1bff", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("9d29ad171863c78f0b97c8e9ae82ae43d3", "https://www.example.com"),
            ("", ""),
        ] {
            let mut found = Vec::new();
            huffman_decode(&bytes(hex), &mut found).unwrap();
            assert_eq!(found, text.as_bytes());
        }
        // Padding of zeros, of a whole byte, and with the end-of-string code.
        for hex in ["aec3771a4a", "aec3771a4bff", "ffffffff"] {
            assert!(huffman_decode(&bytes(hex), &mut Vec::new()).is_none(), "{hex}");
        }
    }

    #[test]
    fn a_block_of_the_standard_is_read() {
        // RFC 7541, C.6.1.
        let block = "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3";
        let found = fields(&bytes(block)).unwrap();
        assert_eq!(found[0], (Name::Status, "302".into()));
        assert_eq!(found[3], (Name::Location, "https://www.example.com".into()));
        assert_eq!(found.len(), 4);
        assert_eq!(fields(b"\x20\x88\x5c\x011").unwrap()[1], (Name::ContentLength, "1".into()));
        assert_eq!(fields(b"\x00\x07:status\x03404").unwrap(), [(Name::Status, "404".to_string())]);
    }

    #[test]
    fn a_broken_block_is_refused_wherever_it_is_cut() {
        let block = b"\x48\x03302\x0f\x1f\x03abc\x00\x06server\x04self";
        assert_eq!(fields(block).unwrap().len(), 3);
        for cut in [1, 2, 4, 6, 7, 9, 12, 15, 20, block.len() - 1] {
            assert!(fields(&block[..cut]).is_none(), "{cut}");
        }
        for bad in [&b"\xbe"[..], b"\x80", b"\x3f\xe1\x1f", b"\xff\xff\xff\xff\xff\xff\x01", b"\x7e\x01a"] {
            assert!(fields(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn encoded_blocks_are_decoded() {
        let mut block = Vec::new();
        put_entry(STATUS, &mut block);
        put_field(LOCATION, &[b'a'; 5000], &mut block);
        assert_eq!(fields(&block).unwrap(), [(Name::Status, "200".into()), (Name::Location, "a".repeat(5000))]);
    }
}
