//! What a server says by HTTP/3, on its own streams and on that of a response. QUIC below it is quinn-proto's.

use crate::drivers::http::three::read;

/// The first byte says how long the part on the server's own stream is, the second one where to cut.
pub fn meet(data: &[u8]) {
    let Some((&[aside, cut], rest)) = data.split_first_chunk::<2>() else { return };
    let (aside, response) = rest.split_at(usize::from(aside).min(rest.len()));
    let whole = read(&[aside], &[response]);
    for length in [1, usize::from(cut) + 1] {
        let (asides, responses): (Vec<&[u8]>, Vec<&[u8]>) =
            (aside.chunks(length).collect(), response.chunks(length).collect());
        assert_eq!(read(&asides, &responses), whole, "in pieces of {length}");
    }
}
