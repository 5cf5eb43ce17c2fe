//! statements: a text of several statements, cut where a server ends them. What a piece of it is, each driver says.

/// What the next piece of a text is, as far as the end of a statement depends on it.
pub enum Piece {
    /// Space or a comment: no statement consists of it alone.
    Nothing,
    Text,
    /// The `;` that ends a statement.
    End,
}

/// The statements of a text, without the `;` between them. A piece without a statement in it is left out.
/// `read`: of the text that is left, what it begins with and how many bytes that is, at least one.
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
