//! The messages of both sides on an HTTP/2 connection before the first request.

use super::frame::{FRAME_BYTES, Frame, HEADER_BYTES, flag, kind, put_frame};
use super::state::USUAL_WINDOW;
use crate::drivers::network::buffer::Buffer;
use crate::drivers::network::wire::{Inbox, Login, Turn};
use crate::failure::{Failure, Result};
use crate::message;

/// Receive window: so large that no response waits for its renewal.
pub const WINDOW: u32 = 1 << 30;

/// Input before the first request: the server's SETTINGS and frames that come with them. Allocated only then.
pub struct Beginning(Buffer);

impl Default for Beginning {
    fn default() -> Beginning {
        Beginning(Buffer::with_room(0))
    }
}

impl Inbox for Beginning {
    fn buffer(&mut self) -> &mut Buffer {
        &mut self.0
    }

    fn clear(&mut self) {
        self.0 = Buffer::with_room(HEADER_BYTES + FRAME_BYTES);
    }
}

/// Both sides send their settings.
#[derive(Default)]
pub struct Preface;

impl Login<Beginning> for Preface {
    fn first(&mut self, _: &message::Server) -> Result<Vec<u8>> {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // No dynamic table, no push, and a window for any response.
        let settings = [(1u16, 0u32), (2, 0), (4, WINDOW)];
        let settings =
            settings.iter().flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat());
        put_frame(kind::SETTINGS, 0, 0, &settings.collect::<Vec<u8>>(), &mut bytes);
        put_frame(kind::WINDOW_UPDATE, 0, 0, &(WINDOW - USUAL_WINDOW as u32).to_be_bytes(), &mut bytes);
        Ok(bytes)
    }

    /// Leaves the frames in place: the connection's state takes them.
    fn hear(&mut self, inbox: &mut Beginning, _: &message::Server) -> Result<Turn> {
        let unread = inbox.0.unread();
        if unread.len() < HEADER_BYTES {
            return Ok(Turn::Wait);
        }
        let frame = Frame::read(unread);
        if frame.kind != kind::SETTINGS || frame.has(flag::ACK) || frame.length > FRAME_BYTES {
            return Err(Failure::connect("the server does not speak HTTP/2"));
        }
        Ok(if unread.len() < HEADER_BYTES + frame.length { Turn::Wait } else { Turn::Ready })
    }
}
