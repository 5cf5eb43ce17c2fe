//! Encodes requests: HEADERS, and DATA if there is a body.

use super::frame::{kind, put_frame, put_number};
use crate::decimal::{DIGITS, decimal};
use crate::drivers::http::exchange::Place;
use crate::drivers::http::qpack::{self, entry};
use crate::drivers::http::statement::{Asked, Method};
use crate::program::Operation;

/// A statement's request: fields that are always the same are already encoded.
pub struct Request {
    asked: Asked,
    /// The beginning of the field section: the pseudo-header fields, but not a path that differs from request to request.
    fields: Vec<u8>,
    /// The whole request, if it is always the same.
    whole: Option<Vec<u8>>,
}

impl Request {
    pub fn new(asked: Asked, place: &Place) -> Request {
        let mut fields = qpack::PREFIX.to_vec();
        let method = match asked.method {
            Method::Get => entry::GET,
            Method::Head => entry::HEAD,
            Method::Post => entry::POST,
            Method::Put => entry::PUT,
            Method::Delete => entry::DELETE,
            Method::Patch => entry::GET,
        };
        match asked.method {
            Method::Patch => qpack::put_field(method, b"PATCH", &mut fields),
            _ => qpack::put_entry(method, &mut fields),
        }
        qpack::put_entry(entry::HTTPS, &mut fields);
        qpack::put_field(entry::AUTHORITY, place.authority.as_bytes(), &mut fields);
        if let Some(path) = asked.path.fixed() {
            qpack::put_field(entry::PATH, path, &mut fields);
        }
        let fixed = asked.is_fixed();
        let mut request = Request { asked, fields, whole: None };
        if fixed {
            let mut whole = Vec::new();
            request.put(&Operation::default(), &mut Vec::new(), &mut whole);
            request.whole = Some(whole);
        }
        request
    }

    pub fn fixed(&self) -> Option<&[u8]> {
        self.whole.as_deref()
    }

    pub fn is_head(&self) -> bool {
        self.asked.method == Method::Head
    }

    pub fn label(&self, operation: &Operation) -> String {
        self.asked.label(operation)
    }

    /// Appends the request. `room`: a buffer.
    pub fn put(&self, operation: &Operation, room: &mut Vec<u8>, into: &mut Vec<u8>) {
        room.clear();
        room.extend_from_slice(&self.fields);
        if self.asked.path.fixed().is_none() {
            let mut path = Vec::new();
            self.asked.path.put(operation, &mut path);
            qpack::put_field(entry::PATH, &path, room);
        }
        let mut value = Vec::new();
        for header in &self.asked.headers {
            value.clear();
            header.value.put(operation, &mut value);
            put_header(&header.name, &value, room);
        }
        let length = self.asked.body.as_ref().map_or(0, |body| body.length(operation));
        if self.asked.states_length() {
            let mut digits = [0; DIGITS];
            qpack::put_field(entry::CONTENT_LENGTH, decimal(length as i64, &mut digits), room);
        }
        put_frame(kind::HEADERS, room, into);
        if let Some(body) = self.asked.body.as_ref().filter(|_| length > 0) {
            put_number(kind::DATA, into);
            put_number(length as u64, into);
            body.put(operation, into);
        }
    }
}

fn put_header(name: &str, value: &[u8], into: &mut Vec<u8>) {
    let name = name.to_ascii_lowercase();
    match entry::NAMES.iter().find(|(known, _)| *known == name) {
        _ if name == "accept" && value == b"*/*" => qpack::put_entry(entry::ACCEPT_ANY, into),
        Some((_, entry)) => qpack::put_field(*entry, value, into),
        None => qpack::put_named(name.as_bytes(), value, into),
    }
}
