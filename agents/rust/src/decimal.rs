//! Formats an integer as decimal digits without allocating.

/// Room for any i64.
pub const DIGITS: usize = 20;

#[inline]
pub fn decimal(value: i64, room: &mut [u8; DIGITS]) -> &[u8] {
    let (mut at, mut left) = (DIGITS, value.unsigned_abs());
    loop {
        at -= 1;
        room[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        room[at] = b'-';
    }
    &room[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_any_formatter() {
        for value in [0, 7, -1, 1234567890, i64::MAX, i64::MIN] {
            assert_eq!(decimal(value, &mut [0; DIGITS]), value.to_string().as_bytes());
        }
    }
}
