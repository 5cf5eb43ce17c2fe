//! state: one connection's side of HTTP/2.

use super::frame::FRAME_BYTES;
use crate::drivers::http::body::Body;
use crate::drivers::http::exchange::Details;

/// What may be sent before the other side says that there is room for more.
pub const USUAL_WINDOW: i64 = 65_535;

/// One connection's side of HTTP/2.
#[derive(Debug)]
pub struct Two {
    /// The stream that was opened last, or 0.
    pub(super) stream: u32,
    pub(super) of_head: bool,
    pub(super) begun: bool,
    pub(super) done: bool,
    /// The server takes no more streams.
    pub(super) leaving: bool,
    pub(super) status: u16,
    /// Interim responses (1xx) before the response, and frames that are no part of it.
    pub(super) interim: u32,
    pub(super) others: u32,
    pub(super) length: Option<u64>,
    pub(super) received: u64,
    pub(super) body: Body,
    pub(super) details: Details,
    /// A frame's header, or a frame that is looked at as a whole, of which not all has come.
    pub(super) partial: Vec<u8>,
    /// A frame of the body whose rest has yet to come: how much, and whether it is the last.
    pub(super) data_left: usize,
    pub(super) data_ends: bool,
    /// A header block that goes on in the next frame, and whether the stream ends with it.
    pub(super) block: Option<(Vec<u8>, bool)>,
    /// Room for what is decoded of a block. Reused.
    pub(super) room: Vec<u8>,
    /// What was received since it was last said that there is room again.
    pub(super) unsaid: u32,
    pub(super) unsaid_of_stream: u32,
    /// How much may be sent, on the connection and on the stream; what a new stream begins with; a frame's most bytes.
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
            of_head: false,
            begun: false,
            done: true,
            leaving: false,
            status: 0,
            interim: 0,
            others: 0,
            length: None,
            received: 0,
            body: Body::default(),
            details: Details::default(),
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
