//! Load on stores that take requests slowly, on real sockets.

use super::Resp;
use crate::draw::Kind;
use crate::drivers::http::tests::servers::certificate;
use crate::drivers::key_value::KeyValue;
use crate::drivers::network::connect;
use crate::load::Plan;
use crate::message::{Arrivals, Connect, Line, Request};
use crate::program::Program;
use openssl::ssl::{SslAcceptor, SslMethod};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// No socket holds so much by itself.
const VALUE_BYTES: usize = 16 << 20;
/// How many values a store must have got before the slow one reads any.
const FIRST: usize = 3;

/// What the stores have got.
#[derive(Default)]
struct Got {
    values: AtomicUsize,
    broken: AtomicUsize,
}

/// A line of digits behind a mark.
fn length(stream: &mut impl BufRead, mark: char) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    line.strip_prefix(mark)?.trim_end().parse().ok()
}

/// Answers each command. A slow store leaves a value unread until the others have got some.
fn serve(stream: impl Read + Write, slow: bool, got: &Got) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let words = length(&mut stream, '*')?;
        for _ in 0..words {
            let bytes = length(&mut stream, '$')?;
            while slow && bytes == VALUE_BYTES && got.values.load(Relaxed) < FIRST {
                thread::sleep(Duration::from_millis(1));
            }
            let mut word = vec![0; bytes + 2];
            stream.read_exact(&mut word).ok()?;
            if bytes == VALUE_BYTES {
                let letters = word[..bytes].iter().all(u8::is_ascii_lowercase);
                got.broken.fetch_add(usize::from(!letters), Relaxed);
                got.values.fetch_add(1, Relaxed);
            }
        }
        stream.get_mut().write_all(b"+OK\r\n").ok()?;
    }
}

/// A store whose second connection is slow. Returns its port.
fn store(tls: bool, got: Arc<Got>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let little = 64i32 << 10;
    // SAFETY: the kernel reads one integer. Accepted sockets inherit it.
    unsafe {
        let (value, length) = ((&raw const little).cast(), size_of_val(&little) as u32);
        assert_eq!(libc::setsockopt(listener.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, value, length), 0);
    }
    let port = listener.local_addr().unwrap().port();
    let acceptor = tls.then(|| {
        let (key, certificate) = certificate();
        let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).unwrap();
        acceptor.set_private_key(&key).unwrap();
        acceptor.set_certificate(&certificate).unwrap();
        acceptor.build()
    });
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (stream, acceptor, got) = (stream.unwrap(), acceptor.clone(), got.clone());
            thread::spawn(move || match acceptor {
                None => serve(stream, number == 1, &got),
                Some(acceptor) => acceptor.accept(stream).ok().and_then(|stream| serve(stream, number == 1, &got)),
            });
        }
    });
    port
}

#[test]
fn a_server_that_does_not_read_holds_only_its_own_connection() {
    for tls in [false, true] {
        let got = Arc::new(Got::default());
        let port = store(tls, got.clone());
        let tls = if tls { "require" } else { "off" };
        let line = format!(
            r#"{{"type":"connect","driver":"resp","arm":"a","host":"127.0.0.1","port":{port},"user":"","tls":"{tls}","connections":2}}"#
        );
        let Ok(Request::Connect(Connect::Resp(pool, asked))) = Line::read(line.as_bytes()).and_then(Line::request)
        else {
            panic!("{line}")
        };
        let (mut arm, _) = connect::<KeyValue<Resp>>(&pool, &asked).unwrap();
        let mut program = Program::new("p".into());
        program.add_variable("v".into(), Kind::Text { length: VALUE_BYTES }).unwrap();
        program.add_transaction("t".into(), 1).unwrap();
        program.add_statement("t", None, "SET k $1".into(), "v", false).unwrap();
        let operations = 2 * FIRST as u64;
        let plan = Plan {
            length_ns: 60_000_000_000,
            discard_ns: 0,
            seed: 1,
            interval_ns: None,
            arrivals: Arrivals::Even,
            due_us: None,
            operations: Some(operations),
            silence_ns: 20_000_000_000,
        };
        let tally = arm.slice(&Arc::new(program.script("a").unwrap()), &plan, &mut || ()).unwrap().tally;
        assert_eq!((tally.operations, tally.rows, tally.errors), (operations, operations, 0), "{}", tally.first_error);
        assert_eq!((got.values.load(Relaxed), got.broken.load(Relaxed)), (2 * FIRST, 0));
        assert!(tally.traffic.bytes_sent > operations * VALUE_BYTES as u64, "{:?}", tally.traffic);
        assert!(tally.traffic.segments_sent > 0 && tally.traffic.segments_received > 0, "{:?}", tally.traffic);
    }
}
