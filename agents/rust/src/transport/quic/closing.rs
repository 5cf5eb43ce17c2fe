//! Says why a connection, or one of its streams, has ended.

use crate::failure::Failure;
use quinn_proto::{ConnectionError, VarInt};
use std::ffi::{CStr, c_char, c_int};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// TLS's alert of a server that does not speak the offered protocol.
const NO_APPLICATION_PROTOCOL: u64 = 120;
/// TLS's alert of a server that wants a client certificate.
const CERTIFICATE_REQUIRED: u64 = 116;
/// TLS's alerts are QUIC's errors from here on.
const ALERTS: u64 = 0x100;
/// QUIC's error of a server that takes no connection.
const REFUSED: u64 = 2;

/// When a server fell silent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Silent {
    AtFirst,
    Later,
}

unsafe extern "C" {
    fn SSL_alert_desc_string_long(alert: c_int) -> *const c_char;
}

/// The failure that ended a connection.
pub fn failure(reason: &ConnectionError, address: SocketAddr, silent: Silent) -> Failure {
    match reason {
        // What this client found wrong with TLS has its text already.
        ConnectionError::TransportError(error) if u64::from(error.code) >= ALERTS => Failure::tls(&error.reason),
        ConnectionError::TransportError(error) => Failure::new("malformed", format!("QUIC: {error}")),
        ConnectionError::ConnectionClosed(frame) => match u64::from(frame.error_code) {
            code if code == ALERTS + NO_APPLICATION_PROTOCOL => {
                Failure::tls("the server does not speak the protocol offered by ALPN")
            }
            code @ ALERTS..0x200 => {
                Failure::tls(format!("the server refused the TLS handshake: {}", alert(code - ALERTS)))
            }
            REFUSED => Failure::connect(format!("the server at {address} refuses QUIC connections")),
            _ => Failure::connect(format!("the server closed the connection: {frame}")),
        },
        ConnectionError::ApplicationClosed(frame) => {
            Failure::connect(format!("the server closed the connection: {}", named(frame.error_code.into_inner())))
        }
        ConnectionError::Reset => Failure::connect("the server does not know the connection any more"),
        ConnectionError::TimedOut if silent == Silent::AtFirst => unanswered(address),
        ConnectionError::TimedOut => Failure::connect("the connection was idle for longer than the server allows"),
        ConnectionError::VersionMismatch => Failure::connect(format!("the server at {address} has no QUIC version 1")),
        ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => Failure::connect("the connection is closed"),
    }
}

/// Nothing came back.
pub fn unanswered(address: SocketAddr) -> Failure {
    Failure::connect(format!(
        "no answer from {address} by UDP: a firewall drops its packets, or the server has no HTTP/3 on this port"
    ))
}

/// The socket says that the server can't be reached.
pub fn unreachable(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::connect(match error.kind() {
        ErrorKind::ConnectionRefused => format!(
            "cannot connect to {address} by UDP: nobody listens there; the server has no HTTP/3 on this port, or is not running"
        ),
        ErrorKind::PermissionDenied => {
            format!("cannot connect to {address} by UDP: a firewall here forbids it ({error})")
        }
        _ => format!("cannot connect to {address} by UDP: {error}"),
    })
}

/// The server gave up a stream.
pub fn reset(code: VarInt) -> String {
    format!("the server reset the stream: {}", named(code.into_inner()))
}

/// The name of TLS's alert.
fn alert(number: u64) -> String {
    // SAFETY: the function takes any number and returns a static string.
    match unsafe { CStr::from_ptr(SSL_alert_desc_string_long(number as c_int)) }.to_string_lossy().as_ref() {
        // OpenSSL has no name for this one of TLS 1.3.
        _ if number == CERTIFICATE_REQUIRED => "certificate required".to_string(),
        "unknown" => format!("alert {number}"),
        name => name.to_string(),
    }
}

/// The name of an application's error: HTTP/3's (RFC 9114, 8.1), QPACK's (RFC 9204, 6).
fn named(code: u64) -> String {
    const NAMES: [&str; 17] = [
        "H3_NO_ERROR",
        "H3_GENERAL_PROTOCOL_ERROR",
        "H3_INTERNAL_ERROR",
        "H3_STREAM_CREATION_ERROR",
        "H3_CLOSED_CRITICAL_STREAM",
        "H3_FRAME_UNEXPECTED",
        "H3_FRAME_ERROR",
        "H3_EXCESSIVE_LOAD",
        "H3_ID_ERROR",
        "H3_SETTINGS_ERROR",
        "H3_MISSING_SETTINGS",
        "H3_REQUEST_REJECTED",
        "H3_REQUEST_CANCELLED",
        "H3_REQUEST_INCOMPLETE",
        "H3_MESSAGE_ERROR",
        "H3_CONNECT_ERROR",
        "H3_VERSION_FALLBACK",
    ];
    const QPACK: [&str; 3] = ["QPACK_DECOMPRESSION_FAILED", "QPACK_ENCODER_STREAM_ERROR", "QPACK_DECODER_STREAM_ERROR"];
    let at = |from: u64, names: &[&'static str]| {
        code.checked_sub(from).and_then(|at| names.get(usize::try_from(at).ok()?).copied())
    };
    at(0x100, &NAMES).or_else(|| at(0x200, &QPACK)).map_or_else(|| format!("error {code:#x}"), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_names_of_the_standards() {
        let names = [(0x100, "H3_NO_ERROR"), (0x10b, "H3_REQUEST_REJECTED"), (0x110, "H3_VERSION_FALLBACK")];
        for (code, name) in names.into_iter().chain([(0x201, "QPACK_ENCODER_STREAM_ERROR"), (0x111, "error 0x111")]) {
            assert_eq!(named(code), name);
        }
        for (number, name) in [(40, "handshake failure"), (116, "certificate required"), (255, "alert 255")] {
            assert_eq!(alert(number), name);
        }
    }

    #[test]
    fn a_closed_port_and_a_silent_one_are_told_apart() {
        let address: SocketAddr = "127.0.0.1:443".parse().unwrap();
        let closed = unreachable(address, &io::Error::from(ErrorKind::ConnectionRefused));
        assert!(closed.text.contains("nobody listens"), "{closed}");
        let silent = failure(&ConnectionError::TimedOut, address, Silent::AtFirst);
        assert!(silent.text.contains("no answer from 127.0.0.1:443 by UDP"), "{silent}");
    }
}
