//! Splits a text into statements where a server ends them. Each driver classifies the pieces.

/// Kind of the next piece of a text, as far as the end of a statement depends on it.
pub enum Piece {
    /// Space or a comment: no statement consists of it alone.
    Nothing,
    Text,
    /// The `;` that ends a statement.
    End,
}

/// The statements of a text without the `;` between them. Pieces without a statement are left out.
/// `read`: kind and length (at least one byte) of the first piece of the remaining text.
pub fn cut(sql: &str, mut read: impl FnMut(&str) -> (Piece, usize)) -> Vec<&str> {
    let (mut found, mut start, mut at, mut empty) = (Vec::new(), 0, 0, true);
    while at < sql.len() {
        let (piece, length) = read(&sql[at..]);
        match piece {
            Piece::Nothing => {}
            Piece::Text => empty = false,
            Piece::End => {
                if !empty {
                    found.push(sql[start..at].trim_ascii());
                }
                (start, empty) = (at + length, true);
            }
        }
        at += length;
    }
    if !empty {
        found.push(sql[start..].trim_ascii());
    }
    found
}
