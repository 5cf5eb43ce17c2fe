//! A connection whose server says nothing.

use super::*;
use crate::message::{Connect, Line, Request};
use crate::transport::socket::Mode;
use crate::transport::tls::{Application, TlsClient};
use std::net::UdpSocket;
use std::time::Duration;

/// A polled connection to a server that says nothing.
fn unheard(server: &UdpSocket) -> Box<Quic> {
    let line = r#"{"type":"connect","driver":"http","arm":"a","host":"127.0.0.1","port":1,"tls":"require","http":"3"}"#;
    let Request::Connect(Connect::Http(_, asked)) = Line::read(line.as_bytes()).and_then(Line::request).unwrap() else {
        panic!("{line}")
    };
    let application = Application { name: "h3", must_agree: true };
    let tls = TlsClient::offering(&asked.server(), false, Some(application)).unwrap().unwrap();
    let address = server.local_addr().unwrap();
    let socket = Socket::open_datagrams(address, Mode::Polled).unwrap();
    QuicClient::new(tls, Manners { first: &[0, 4, 0], goodbye: 0x100 }).start(socket, address).unwrap()
}

#[test]
fn what_was_lost_is_sent_again_when_the_timer_of_a_polled_connection_has_passed() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let mut quic = unheard(&server);
    assert!(!quic.shake_hands().unwrap());
    while server.recv(&mut [0; 2000]).is_ok() {}
    let due_ns = quic.timer_ns().unwrap();
    std::thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns())));
    // The thread that polls compares it with a time that it took before.
    let woken_ns = now_ns();
    assert!(quic.timer_ns().unwrap() <= woken_ns);
    assert!(!quic.shake_hands().unwrap());
    server.set_nonblocking(false).unwrap();
    server.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert!(server.recv(&mut [0; 2000]).is_ok());
}
