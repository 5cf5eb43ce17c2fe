//! Operations that open their own connections, against servers that respond, refuse and disconnect.

use super::connect;
use crate::arm::Arm;
use crate::cut_slices::cut_slices;
use crate::load::{Plan, Tally};
use crate::message::{Arrivals, Connect, Line, Request};
use crate::program::{Program, Script};
use crate::transport::scripted::{self, Speech};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const SHUT_DOWN: i32 = 335_544_856;

fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

/// The server accepts protocol 13 without authentication.
fn accept() -> Vec<u8> {
    ints(&[3, 0x800d, 1, 5])
}

/// A response with this object, or none.
fn done(object: i32) -> Vec<u8> {
    ints(&[9, object, 0, 0, 0, 1, 0, 0])
}

fn refusal(code: i32) -> Vec<u8> {
    ints(&[9, 0, 0, 0, 0, 1, code, 0])
}

/// Requests to attach and to create a database.
const ATTACH: i32 = 19;
const CREATE: i32 = 20;

/// Sends one reply after the other, waits for the message after the last one, and closes. Returns the request in the
/// second packet.
fn converse(mut stream: TcpStream, replies: &[Vec<u8>], pause: Duration) -> i32 {
    let (mut room, mut second) = ([0; 4096], 0);
    for (number, reply) in replies.iter().enumerate() {
        if stream.read(&mut room).unwrap_or(0) == 0 {
            return second;
        }
        if number == 1 {
            second = i32::from_be_bytes(room[..4].try_into().unwrap());
        }
        thread::sleep(pause);
        if stream.write_all(reply).is_err() {
            return second;
        }
    }
    let _ = stream.read(&mut room);
    second
}

/// A server whose first connection lets `connect` succeed and whose later ones send these replies. Returns its port.
fn server(replies: Vec<Vec<u8>>, pause: Duration) -> u16 {
    server_by(move |_| replies.clone(), pause)
}

/// The same with replies by connection number.
fn server_by(replies: impl Fn(usize) -> Vec<Vec<u8>> + Send + 'static, pause: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let first = vec![accept(), done(1), done(0), done(0)];
        for (number, stream) in listener.incoming().enumerate() {
            let (stream, replies) = (stream.unwrap(), if number == 0 { first.clone() } else { replies(number) });
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || converse(stream, &replies, pause));
        }
    });
    port
}

fn arm(port: u16, connections: usize) -> Box<dyn Arm> {
    arm_with(port, &format!(r#""per_request":true,"connections":{connections}"#))
}

fn arm_with(port: u16, fields: &str) -> Box<dyn Arm> {
    let line = format!(
        r#"{{"type":"connect","driver":"firebird","arm":"a","host":"127.0.0.1","port":{port},"user":"u","password":"p",
            "database":"d",{fields}}}"#
    );
    match Line::read(line.as_bytes()).and_then(Line::request).unwrap() {
        Request::Connect(Connect::Firebird(pool, asked)) => connect(&pool, &asked).unwrap().0,
        other => panic!("{other:?}"),
    }
}

fn script(sql: &str) -> Arc<Script> {
    let mut program = Program::new("p".into());
    program.add_transaction("t".into(), 1).unwrap();
    program.add_statement("t", None, sql.into(), "", false).unwrap();
    Arc::new(program.script("a").unwrap())
}

fn plan(operations: Option<u64>) -> Plan {
    Plan {
        length_ns: 60_000_000_000,
        discard_ns: 0,
        seed: 1,
        interval_ns: None,
        arrivals: Arrivals::Even,
        due_us: None,
        operations,
        silence_ns: 60_000_000_000,
    }
}

fn run(arm: &mut dyn Arm, sql: &str, operations: u64) -> Tally {
    arm.slice(&script(sql), &plan(Some(operations)), &mut || ()).unwrap().tally
}

/// Outside a transaction the driver sends nothing for it: the operation is only login and goodbye.
const NOTHING: &str = "COMMIT";
const CONNECTIONS: u64 = 8;

/// The kernel may count the end of a connection as one byte more, and that of the first one, before the slice, may arrive in it.
fn is_all_of(received: u64, each: u64, connections: u64) -> bool {
    let ends = connections + 1;
    (connections * each..=connections * each + ends).contains(&received)
}

#[test]
fn a_connection_has_all_its_bytes_in_one_slice_or_in_none() {
    // Long responses, so that a cut is larger than the ends of connections.
    let long = |object: i32| [ints(&[9, object, 0, 0, 4000]), vec![0; 4000], ints(&[1, 0, 0])].concat();
    let each = (accept().len() + 2 * long(0).len()) as u64;
    let port = server(vec![accept(), long(1), long(0)], Duration::from_millis(2));
    let mut arm = arm(port, CONNECTIONS as usize);
    cut_slices(&mut *arm, &script(NOTHING), &plan(None), CONNECTIONS, |slice, tally| {
        // Operations that ended just before the slice may have the ends of their connections in it, and vice versa.
        let (received, operations) = (tally.traffic.bytes_received, tally.operations);
        let ends = operations + CONNECTIONS;
        // An operation whose bytes have come when the slice begins or ends, and whose end is seen just after that, has them on one side
        // and is counted on the other.
        let mut as_seen = operations.saturating_sub(1)..=operations + 1;
        assert!(
            as_seen.any(|connections| received.abs_diff(connections * each) <= ends),
            "slice {slice}: {operations} operations, {received} bytes, {each} a connection"
        );
    });
}

#[test]
fn a_connection_that_fails_has_moved_bytes_too() {
    for (replies, bytes) in [
        // The server disconnects during login, refuses it, disconnects after it, and responds in another protocol.
        (vec![accept()], accept().len()),
        (vec![accept(), refusal(SHUT_DOWN)], accept().len() + refusal(SHUT_DOWN).len()),
        (vec![accept(), done(1)], accept().len() + done(1).len()),
        (vec![b"HTTP/1.1".to_vec()], 8),
    ] {
        for connections in [1, 2] {
            let port = server(replies.clone(), Duration::ZERO);
            let tally = run(&mut *arm(port, connections), NOTHING, 4);
            assert_eq!((tally.operations, tally.errors), (0, 4), "{}", tally.first_error);
            assert!(
                is_all_of(tally.traffic.bytes_received, bytes as u64, 4),
                "{:?} {}",
                tally.traffic,
                tally.first_error
            );
            assert!(tally.traffic.bytes_sent > 4 * 100, "{:?}", tally.traffic);
        }
    }
}

#[test]
fn the_servers_last_error_explains_a_lost_connection() {
    // The transaction is refused, and the goodbye gets no response.
    let port = server(vec![accept(), done(1), refusal(SHUT_DOWN)], Duration::ZERO);
    let tally = run(&mut *arm(port, 1), "SELECT 1 FROM rdb$database", 2);
    assert_eq!(tally.kinds.spell(), "08003=2", "{}", tally.first_error);
    assert!(tally.first_error.contains("the connection was shut down"), "{}", tally.first_error);
}

#[test]
fn a_query_is_independent_of_an_earlier_lost_connection() {
    // The server disconnects when a statement is to be prepared within a transaction.
    let lost = || vec![accept(), done(1), done(2)];
    let port =
        server_by(move |number| if number < 3 { lost() } else { vec![accept(), done(1), done(0)] }, Duration::ZERO);
    let mut arm = arm(port, 1);
    assert_eq!(run(&mut *arm, "SELECT 1 FROM rdb$database", 2).errors, 2);
    assert_eq!(arm.query(NOTHING, false).unwrap().rows, 0);
}

#[test]
fn a_database_is_created_once_for_any_number_of_connections() {
    for (fields, wanted) in [
        (r#""create":true,"connections":3"#, [CREATE, ATTACH, ATTACH]),
        (r#""create":true,"per_request":true"#, [CREATE, ATTACH, ATTACH]),
        (r#""create":false,"connections":3"#, [ATTACH, ATTACH, ATTACH]),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = thread::spawn(move || {
            let first = [accept(), done(1), done(0), done(0)];
            let other = [accept(), done(1), done(0)];
            let serve = |number: usize| {
                let (stream, _) = listener.accept().unwrap();
                let replies = if number == 0 { first.to_vec() } else { other.to_vec() };
                thread::spawn(move || converse(stream, &replies, Duration::ZERO))
            };
            let served: Vec<_> = (0..3).map(serve).collect();
            served.into_iter().map(|each| each.join().unwrap()).collect::<Vec<_>>()
        });
        let mut arm = arm_with(port, fields);
        if fields.contains("per_request") {
            assert_eq!(run(&mut *arm, NOTHING, 2).errors, 0);
        }
        drop(arm);
        assert_eq!(served.join().unwrap(), wanted, "{fields}");
    }
}

/// A row without columns has three numbers on the wire, and would take more in memory.
#[test]
fn a_result_of_endless_empty_rows_is_refused() {
    let select = [ints(&[9, 0, 0, 0, 8]), vec![21, 4, 0, 1, 0, 0, 0, 1], ints(&[1, 0, 0])].concat();
    let rows = ints(&[66, 0, 1]).repeat(3_000_000);
    let flights = vec![
        [accept(), done(1), done(0)].concat(),
        done(1),
        [done(2), select].concat(),
        [done(0), rows, ints(&[66, 100, 0])].concat(),
        [done(0), done(0)].concat(),
    ];
    scripted::with(Speech { flights, ..Speech::default() }, || {
        let refused = arm_with(1, r#""connections":1"#).query("SELECT 1", false).unwrap_err();
        assert_eq!(refused.text, "the answer is longer than 16 MiB");
    });
}
