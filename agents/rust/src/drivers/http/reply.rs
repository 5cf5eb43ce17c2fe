//! The response on a stream of HTTP/2 or HTTP/3: interim heads, its head, its body, a trailer, and whether they fit together.

use super::body::Body;
use super::exchange::{Details, Response, closed_early, malformed};
use super::hpack::Name;
use super::reader::{self, MOST_HEADERS, MOST_INTERIM};
use crate::failure::{Failure, Result};

/// The response on one stream.
#[derive(Debug, Default)]
pub struct Reply {
    of_head: bool,
    /// Some part of it has arrived.
    pub begun: bool,
    /// It is complete.
    pub done: bool,
    pub status: u16,
    /// Interim responses (1xx) before it.
    interim: u32,
    length: Option<u64>,
    received: u64,
    pub body: Body,
    pub details: Details,
}

/// The fields of a head that matter.
struct Head {
    status: u16,
    length: Option<u64>,
    sound: bool,
    fields: usize,
    location: String,
    server: String,
    content_type: String,
    content_encoding: String,
    /// Whether to keep the last three.
    wanted: bool,
}

impl Head {
    fn see(&mut self, name: Name, value: &[u8]) {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        self.fields += 1;
        match name {
            Name::Status => {
                let digits = value.len() == 3 && value.iter().all(u8::is_ascii_digit);
                self.sound &= self.status == 0 && digits;
                let number = |sum, digit: &u8| sum * 10 + u16::from(digit - b'0');
                self.status = if digits { value.iter().fold(0, number) } else { 0 };
            }
            Name::ContentLength => {
                let stated = reader::decimal(value);
                self.sound &= stated.is_some() && self.length.is_none_or(|known| Some(known) == stated);
                self.length = stated;
            }
            Name::Location => self.location = text(value),
            Name::Server if self.wanted => self.server = text(value),
            Name::ContentType if self.wanted => self.content_type = text(value),
            Name::ContentEncoding if self.wanted => self.content_encoding = text(value),
            Name::Pseudo => self.sound = false,
            Name::Server | Name::ContentType | Name::ContentEncoding | Name::Other => {}
        }
    }
}

impl Reply {
    /// Of a connection that no request has used.
    pub fn none() -> Reply {
        Reply { done: true, ..Reply::default() }
    }

    /// Prepares for a response. `of_head`: to a request whose response has no body.
    #[inline]
    pub fn start(&mut self, of_head: bool, keep_body: bool) {
        self.of_head = of_head;
        (self.begun, self.done) = (false, false);
        (self.status, self.interim) = (0, 0);
        (self.length, self.received) = (None, 0);
        self.body.start(keep_body);
        self.details.wanted = keep_body;
    }

    /// A block of fields: an interim response, the response, or its trailer. `decode` passes its fields on, or finds it malformed.
    pub fn head(&mut self, ends: bool, decode: impl FnOnce(&mut dyn FnMut(Name, &[u8])) -> Option<()>) -> Result<()> {
        let trailer = self.status != 0;
        let mut head = Head {
            status: 0,
            length: None,
            sound: true,
            fields: 0,
            location: String::new(),
            server: String::new(),
            content_type: String::new(),
            content_encoding: String::new(),
            wanted: self.details.wanted,
        };
        if decode(&mut |name, value| head.see(name, value)).is_none() {
            return Err(malformed("the response's header block is malformed"));
        }
        if head.fields > MOST_HEADERS {
            return Err(malformed(format!("the response's head has more than {MOST_HEADERS} fields")));
        }
        let Head { status, length, sound, location, server, content_type, content_encoding, .. } = head;
        if trailer {
            return match ends && sound && status == 0 {
                true => self.data(&[], true),
                false => Err(malformed("the response's trailer is malformed")),
            };
        }
        if !sound || status < 100 || status == 101 {
            return Err(malformed("the response's head is malformed"));
        }
        if status < 200 {
            self.interim += 1;
            if self.interim > MOST_INTERIM {
                return Err(malformed(format!("more than {MOST_INTERIM} interim responses")));
            }
            return if ends { Err(malformed("the stream ended with an interim response")) } else { Ok(()) };
        }
        self.status = status;
        self.length = length.filter(|_| !self.is_bodiless());
        self.details.reason = String::new();
        (self.details.location, self.details.server) = (location, server);
        (self.details.content_type, self.details.content_encoding) = (content_type, content_encoding);
        self.body.seed(status);
        if ends {
            self.data(&[], true)?;
        }
        Ok(())
    }

    fn is_bodiless(&self) -> bool {
        self.of_head || matches!(self.status, 204 | 304)
    }

    /// A part of the body; `ends`: the last one.
    #[inline]
    pub fn data(&mut self, part: &[u8], ends: bool) -> Result<()> {
        self.received += part.len() as u64;
        if !part.is_empty() && self.is_bodiless() {
            return Err(malformed("unexpected body before the response's head"));
        }
        self.body.add(part, ends);
        if self.length.is_some_and(|length| self.received > length) {
            return Err(malformed("the body is longer than its Content-Length"));
        }
        if ends {
            if self.length.is_some_and(|length| self.received < length) {
                return Err(closed_early("the stream ended before the body does, by its Content-Length"));
            }
            self.done = true;
        }
        Ok(())
    }

    /// The connection ended before the response did.
    pub fn cut_off(&self) -> Failure {
        closed_early(match (self.begun, self.status) {
            (false, _) => "the connection ended before any response".to_string(),
            (true, 0) => "the connection ended within the response's head".to_string(),
            _ => match self.length {
                Some(length) => format!("the connection ended {} bytes before the body does", length - self.received),
                None => "the connection ended before the stream does".to_string(),
            },
        })
    }

    #[inline]
    pub fn response(&mut self) -> Response<'_> {
        Response { status: self.status, body: &mut self.body, details: &self.details }
    }
}
