//! Splits SQL as MySQL and MariaDB read it into quoted text, comments and words.

/// Kind of a piece of SQL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Quoted,
    Comment,
    /// `/*! … */` or `/*M! … */`: a comment that the server runs.
    Hidden,
    /// A name, a key word or a number.
    Word,
    /// One byte of anything else.
    Sign,
}

/// The first piece of a non-empty text, and its length. `backslash`: whether it escapes the next character in a
/// string. Every byte that ends a piece is ASCII, so all cuts lie between characters.
#[inline]
pub fn piece(rest: &[u8], backslash: bool) -> (Kind, usize) {
    match rest[0] {
        quote @ (b'\'' | b'"' | b'`') => (Kind::Quoted, quoted(rest, quote, backslash && quote != b'`')),
        b'#' => (Kind::Comment, line(rest)),
        b'-' if rest.starts_with(b"--") && rest.get(2).is_none_or(|byte| *byte <= b' ') => (Kind::Comment, line(rest)),
        b'/' if rest.starts_with(b"/*!") || rest.starts_with(b"/*M!") => (Kind::Hidden, comment(rest)),
        b'/' if rest.starts_with(b"/*") => (Kind::Comment, comment(rest)),
        // A name or a number includes a `$` within it.
        byte if is_word(byte) => (Kind::Word, rest.iter().take_while(|byte| is_word(**byte) || **byte == b'$').count()),
        _ => (Kind::Sign, 1),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The length of a quoted text with its quotes. A doubled quote gives two literals in a row, which is equivalent here.
fn quoted(text: &[u8], quote: u8, backslash: bool) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' if backslash => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn line(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())
}

fn comment(text: &[u8]) -> usize {
    text[2..].windows(2).position(|end| end == b"*/").map_or(text.len(), |at| at + 4)
}
