//! Numbers and frames of HTTP/3 (RFC 9114, 7), encoded and decoded.

/// Types of frames.
pub mod kind {
    pub const DATA: u64 = 0;
    pub const HEADERS: u64 = 1;
    pub const SETTINGS: u64 = 4;
    pub const GOAWAY: u64 = 7;
    /// CANCEL_PUSH, PUSH_PROMISE, MAX_PUSH_ID: of pushed responses, which this client never allows.
    pub const OF_PUSHES: [u64; 3] = [3, 5, 13];
    /// Types of HTTP/2 that HTTP/3 forbids.
    pub const FORBIDDEN: [u64; 4] = [2, 6, 8, 9];
}

/// QUIC's number of variable length (RFC 9000, 16). None: it is incomplete.
#[inline]
pub fn number(rest: &mut &[u8]) -> Option<u64> {
    let first = *rest.first()?;
    let (bytes, more) = rest.split_at_checked(1 << (first >> 6))?;
    let value = bytes[1..].iter().fold(u64::from(first & 0x3f), |sum, byte| sum << 8 | u64::from(*byte));
    *rest = more;
    Some(value)
}

/// Appends a number below 2⁶², as short as possible.
pub fn put_number(value: u64, into: &mut Vec<u8>) {
    let (length, flag) = match value {
        0..0x40 => (1, 0),
        0x40..0x4000 => (2, 0x40),
        0x4000..0x4000_0000 => (4, 0x80),
        _ => (8, 0xc0),
    };
    let bytes = value.to_be_bytes();
    let at = into.len();
    into.extend_from_slice(&bytes[8 - length..]);
    into[at] |= flag;
}

/// A frame's type and the length of what follows. None: it is incomplete.
#[inline]
pub fn header(rest: &mut &[u8]) -> Option<(u64, u64)> {
    let mut ahead = *rest;
    let header = (number(&mut ahead)?, number(&mut ahead)?);
    *rest = ahead;
    Some(header)
}

pub fn put_frame(kind: u64, payload: &[u8], into: &mut Vec<u8>) {
    put_number(kind, into);
    put_number(payload.len() as u64, into);
    into.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_standard_are_read_and_written() {
        // RFC 9000, A.1.
        for (bytes, value) in [
            (&b"\xc2\x19\x7c\x5e\xff\x14\xe8\x8c"[..], 151_288_809_941_952_652),
            (b"\x9d\x7f\x3e\x7d", 494_878_333),
            (b"\x7b\xbd", 15_293),
            (b"\x25", 37),
        ] {
            let mut rest = bytes;
            assert_eq!((number(&mut rest), rest.len()), (Some(value), 0));
            let mut written = Vec::new();
            put_number(value, &mut written);
            assert_eq!(written, bytes);
            assert!((0..bytes.len()).all(|cut| number(&mut &bytes[..cut]).is_none()));
        }
        // Longer than needed is allowed.
        assert_eq!(number(&mut &b"\x40\x25"[..]), Some(37));
    }

    #[test]
    fn a_number_at_each_border_comes_back() {
        for value in [0, 0x3f, 0x40, 0x3fff, 0x4000, 0x3fff_ffff, 0x4000_0000, (1 << 62) - 1] {
            let mut written = Vec::new();
            put_number(value, &mut written);
            assert_eq!(number(&mut &written[..]), Some(value));
        }
    }
}
