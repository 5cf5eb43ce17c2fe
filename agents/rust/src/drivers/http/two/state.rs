//! State of one HTTP/2 connection.

use super::frame::FRAME_BYTES;
use crate::drivers::http::reply::Reply;

/// The initial window for sent bytes.
pub const USUAL_WINDOW: i64 = 65_535;

/// State of one HTTP/2 connection.
#[derive(Debug)]
pub struct Two {
    /// The last opened stream, or 0.
    pub(super) stream: u32,
    pub(super) reply: Reply,
    /// The server accepts no more streams.
    pub(super) leaving: bool,
    /// Frames outside of the response.
    pub(super) others: u32,
    /// An incomplete frame header, or an incomplete frame that is parsed as a whole.
    pub(super) partial: Vec<u8>,
    /// The missing rest of a body frame, and whether it is the last frame.
    pub(super) data_left: usize,
    pub(super) data_ends: bool,
    /// A header block that continues in the next frame, and whether the stream ends with it.
    pub(super) block: Option<(Vec<u8>, bool)>,
    /// Buffer for decoded fields. Reused.
    pub(super) room: Vec<u8>,
    /// Bytes received since the last window update.
    pub(super) unsaid: u32,
    pub(super) unsaid_of_stream: u32,
    /// Send windows of connection and stream; the initial window of new streams; the maximum frame size.
    pub(super) may_send: i64,
    pub(super) may_send_on_stream: i64,
    pub(super) usual_window: i64,
    pub(super) most_bytes: usize,
    /// The request's body, and how much of it was sent.
    pub(super) upload: Vec<u8>,
    pub(super) uploaded: usize,
}

impl Default for Two {
    fn default() -> Two {
        Two {
            stream: 0,
            reply: Reply::none(),
            leaving: false,
            others: 0,
            partial: Vec::new(),
            data_left: 0,
            data_ends: false,
            block: None,
            room: Vec::new(),
            unsaid: 0,
            unsaid_of_stream: 0,
            may_send: USUAL_WINDOW,
            may_send_on_stream: USUAL_WINDOW,
            usual_window: USUAL_WINDOW,
            most_bytes: FRAME_BYTES,
            upload: Vec::new(),
            uploaded: 0,
        }
    }
}
