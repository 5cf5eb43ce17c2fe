//! Reads and writes numbers and strings of Firebird's wire format: big-endian, padded to four bytes.

/// Appends numbers and strings to the pending output.
pub trait Put {
    fn int(&mut self, value: i32);
    fn long(&mut self, value: i64);
    /// Bytes without their length.
    fn opaque(&mut self, bytes: &[u8]);
    fn bytes(&mut self, bytes: &[u8]);
}

impl Put for Vec<u8> {
    #[inline]
    fn int(&mut self, value: i32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn long(&mut self, value: i64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn opaque(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
        self.extend_from_slice(&[0; 3][..padding(bytes.len())]);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.int(bytes.len() as i32);
        self.opaque(bytes);
    }
}

/// Zero bytes that pad `length` bytes.
#[inline]
pub fn padding(length: usize) -> usize {
    length.wrapping_neg() & 3
}

/// Parses received bytes; `None` means that more are needed.
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// Number of parsed bytes.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The remaining bytes.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    #[inline]
    pub fn int(&mut self) -> Option<i32> {
        let bytes = self.bytes.get(self.at..self.at + 4)?;
        self.at += 4;
        Some(i32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// Bytes of a known length.
    #[inline]
    pub fn opaque(&mut self, length: usize) -> Option<&'a [u8]> {
        let bytes = self.bytes.get(self.at..self.at + length)?;
        let end = self.at + length + padding(length);
        if end > self.bytes.len() {
            return None;
        }
        self.at = end;
        Some(bytes)
    }

    #[inline]
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.int()?;
        self.opaque(length.max(0) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_padded_to_four_bytes() {
        let mut outbox = Vec::new();
        outbox.int(-2);
        outbox.bytes(b"abcde");
        outbox.bytes(b"");
        outbox.opaque(b"abcd");
        assert_eq!(outbox, b"\xff\xff\xff\xfe\0\0\0\x05abcde\0\0\0\0\0\0\0abcd");
        let mut reader = Reader::new(&outbox);
        assert_eq!(reader.int(), Some(-2));
        assert_eq!(reader.bytes(), Some(&b"abcde"[..]));
        assert_eq!(reader.bytes(), Some(&b""[..]));
        assert_eq!(reader.opaque(4), Some(&b"abcd"[..]));
        assert_eq!((reader.int(), reader.at()), (None, outbox.len()));
    }

    #[test]
    fn truncated_input_is_not_parsed() {
        let mut outbox = Vec::new();
        outbox.bytes(b"abcde");
        for end in 0..outbox.len() {
            assert_eq!(Reader::new(&outbox[..end]).bytes(), None, "{end}");
        }
    }
}
