//! Long bodies that come in parts: what wakes a client that waits for the rest.

use super::clients::*;
use super::servers::*;
use crate::drivers::http::site::Patience;
use crate::load::Plan;
use std::io::Write;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A response with a body of 50,000 bytes: its first 1,000 bytes, which are more than its head; so many parts of a byte; its rest.
fn long_in_parts(single: usize) -> Vec<Vec<u8>> {
    let mut whole = b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n".to_vec();
    whole.resize(whole.len() + 50_000, b'x');
    let rest = whole.split_off(1000 + single);
    let bytes = whole.split_off(1000);
    std::iter::once(whole).chain(bytes.into_iter().map(|byte| vec![byte])).chain([rest]).collect()
}

#[test]
fn a_server_that_sends_a_byte_now_and_then_is_not_silent() {
    let reply = |asked: &str, _: usize| {
        let pause_ms = asked.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
        Reply::Slowly(long_in_parts(5), Duration::from_millis(pause_ms))
    };
    let (port, tls_port) = (server(reply), tls_server(false, b"\x08http/1.1", reply));
    for (port, fields) in [(port, ""), (tls_port, r#","tls":"require""#)] {
        // A busy machine may make the server silent for longer than the client waits at first.
        assert!([(1, 400), (5, 1000)].into_iter().any(|(answer, pause_ms)| {
            let mut arm = arm_with(Patience { answer, ..IN_A_MOMENT }, port, &format!("{}{fields}", WAYS[1]));
            let tally = run(&mut *arm, &[&format!("GET /{pause_ms}")], number(), 2);
            println!("{fields}: {}", tally.first_error);
            (tally.rows, tally.errors) == (2, 0)
        }));
    }
}

#[test]
fn a_server_that_stops_within_a_body_times_out() {
    let port = server(|_, _| Reply::Slowly(long_in_parts(0)[..1].to_vec(), Duration::ZERO));
    let tally = run(&mut *arm_with(IN_A_MOMENT, port, WAYS[1]), &["GET /"], number(), 2);
    assert_eq!(tally.kinds.spell(), "timeout=2", "{}", tally.first_error);
}

#[test]
fn the_last_bytes_of_a_body_are_reported_wherever_its_last_record_was_cut() {
    static LATE: AtomicUsize = AtomicUsize::new(0);
    let port = tls_server_in_flights(b"\x08http/1.1", |mut stream| {
        while let Some(asked) = request(&mut stream) {
            let last = asked.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
            stream.get_mut().hold();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n").unwrap();
            stream.write_all(&[b'x'; 30_000]).unwrap();
            stream.get_mut().release_all_but(last);
            // Its patience is 20 seconds, after which it looks again.
            if last > 0 && !stream.get_ref().hears_within(Duration::from_secs(10)) {
                LATE.fetch_add(1, Relaxed);
            }
        }
    });
    let statements = [1, 100, 13_000, 13_700, 20_000, 30_000, 0].map(|last| format!("GET /{last}"));
    let mut arm = arm(port, &format!(r#"{},"tls":"require""#, WAYS[1]));
    let tally = run(&mut *arm, &statements.each_ref().map(String::as_str), number(), 4);
    assert_eq!((tally.rows, tally.errors, LATE.load(Relaxed)), (4 * 7, 0, 0), "{}", tally.first_error);
}

#[test]
fn an_unexpected_response_after_a_long_one_is_reported_while_the_connection_is_idle() {
    let reply = |_: &str, _: usize| {
        let mut parts = long_in_parts(0);
        parts.push(OK.into());
        Reply::Slowly(parts, Duration::from_millis(30))
    };
    let plan = Plan { interval_ns: Some(500e6), ..so_many(3) };
    let port = server(reply);
    // A client that the machine stops meanwhile reads both at once, which is another error.
    assert!((0..5).any(|_| {
        let tally = arm(port, WAYS[1]).slice(&script(&["GET /"], number()), &plan, &mut || ()).unwrap().tally;
        println!("{}", tally.first_error);
        tally.first_error.contains("no request is pending")
    }));
}
