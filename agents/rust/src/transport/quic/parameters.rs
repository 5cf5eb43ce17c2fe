//! What a client says about itself in QUIC's handshake (RFC 9000, 18).

/// Identifiers of this form mean nothing (RFC 9000, 18.1): a client may send one at random, which a server must ignore.
const RESERVED: (u64, u64) = (31, 27);

/// The same parameters without those that mean nothing. nginx reads an identifier's last 16 bits only, so one in 3,900
/// of them is taken for another parameter: the server refuses the client, sends it too much, or nothing.
pub fn without_reserved(parameters: &[u8]) -> Vec<u8> {
    let (mut kept, mut rest) = (Vec::with_capacity(parameters.len()), parameters);
    while let Some((identifier, whole)) = first(rest) {
        let (this, others) = rest.split_at(whole);
        if identifier % RESERVED.0 != RESERVED.1 {
            kept.extend_from_slice(this);
        }
        rest = others;
    }
    kept.extend_from_slice(rest);
    kept
}

/// The first parameter: its identifier, and how many bytes it takes. None: there is no whole one.
fn first(bytes: &[u8]) -> Option<(u64, usize)> {
    let (identifier, after) = number(bytes)?;
    let (length, value) = number(after)?;
    let whole = (bytes.len() - value.len()).checked_add(usize::try_from(length).ok()?)?;
    (whole <= bytes.len()).then_some((identifier, whole))
}

/// A number of variable length (RFC 9000, 16), and what follows it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = 1 << (bytes.first()? >> 6);
    let (head, rest) = bytes.split_at_checked(length)?;
    let all = head.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    Some((all & (u64::MAX >> (64 - 8 * length + 2)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_are_read() {
        // RFC 9000, A.1.
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15293),
            (&[0x25], 37),
        ] {
            assert_eq!(number(&[bytes, &[9]].concat()), Some((value, &[9][..])));
            assert_eq!(number(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn only_what_means_nothing_is_left_out() {
        let idle = [0x01, 0x02, 0x40, 0x64];
        // 31 · 2114 + 27 = 65,561, whose last 16 bits are those of 0x19; then 27 itself, without a value.
        let (long, short) = ([0x80, 0x01, 0x00, 0x19, 0x03, 1, 2, 3], [0x1b, 0x00]);
        let source = [0x0f, 0x00];
        let all = [&idle[..], &long, &source, &short].concat();
        assert_eq!(without_reserved(&all), [&idle[..], &source].concat());
        assert_eq!(without_reserved(&idle), idle);
        // What is cut off is not ours to mend.
        assert_eq!(without_reserved(&long[..6]), &long[..6]);
    }
}
