//! A driver's connections against servers that accept it, refuse it, and record what they receive.

use super::Postgres;
use crate::arm::Opened;
use crate::drivers::network::connect;
use crate::failure::Result;
use crate::load::{Plan, Tally};
use crate::message::{Arrivals, Connect, Line, Request};
use crate::program::Program;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

/// Authentication is OK, and the server waits for the next message.
fn let_in() -> Vec<u8> {
    [message(b'R', &[0; 4]), message(b'Z', b"I")].concat()
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn refusal() -> Vec<u8> {
    message(b'E', b"SFATAL\0C53300\0Mtoo many clients\0\0")
}

/// One message's tag and body. None: the client has closed.
fn heard(stream: &mut TcpStream, tagged: bool) -> Option<(u8, Vec<u8>)> {
    let (mut tag, mut length) = ([0], [0; 4]);
    if tagged {
        stream.read_exact(&mut tag).ok()?;
    }
    stream.read_exact(&mut length).ok()?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut body).ok()?;
    Some((tag[0], body))
}

/// A PostgreSQL server that accepts this many connections and refuses the others. Returns its port and the texts of
/// the queries that it receives.
fn server(lets_in: usize) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let queries = Arc::new(Mutex::new(Vec::new()));
    let noted = queries.clone();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            heard(&mut stream, false);
            if number >= lets_in {
                stream.write_all(&refusal()).unwrap();
                continue;
            }
            stream.write_all(&let_in()).unwrap();
            while let Some((tag, body)) = heard(&mut stream, true) {
                if tag == b'Q' {
                    noted.lock().unwrap().push(String::from_utf8_lossy(&body).trim_end_matches('\0').to_string());
                }
                match tag {
                    b'Q' | b'S' => stream.write_all(&ready()).unwrap(),
                    b'X' => break,
                    _ => {}
                }
            }
        }
    });
    (port, queries)
}

fn connect_to(port: u16, fields: &serde_json::Value) -> Result<Opened> {
    let mut line = serde_json::json!({
        "type": "connect", "driver": "postgres", "arm": "a", "host": "127.0.0.1", "port": port, "user": "u",
        "database": "d",
    });
    for (name, value) in fields.as_object().unwrap() {
        line[name] = value.clone();
    }
    match Line::read(line.to_string().as_bytes()).and_then(Line::request).unwrap() {
        Request::Connect(Connect::Postgres(pool, asked)) => connect::<Postgres>(&pool, &asked),
        other => panic!("{other:?}"),
    }
}

fn run(opened: Opened, operations: u64) -> Tally {
    let mut program = Program::new("p".into());
    program.add_transaction("t".into(), 1).unwrap();
    program.add_statement("t", None, "SELECT 1".into(), "", false).unwrap();
    let plan = Plan {
        length_ns: 60_000_000_000,
        discard_ns: 0,
        seed: 1,
        interval_ns: None,
        arrivals: Arrivals::Even,
        due_us: None,
        operations: Some(operations),
        silence_ns: 60_000_000_000,
    };
    let (mut arm, _) = opened;
    arm.slice(&Arc::new(program.script("a").unwrap()), &plan, &mut || ()).unwrap().tally
}

#[test]
fn a_connection_that_is_refused_has_moved_bytes_too() {
    for connections in [1, 2] {
        let (port, _) = server(1);
        let opened = connect_to(port, &serde_json::json!({"per_request": true, "connections": connections})).unwrap();
        let tally = run(opened, 4);
        assert_eq!(tally.kinds.spell(), "53300=4", "{}", tally.first_error);
        // The kernel may count the end of a connection as one byte more, also that of the one opened by `connect`.
        let (received, each) = (tally.traffic.bytes_received, refusal().len() as u64);
        assert!((4 * each..=4 * (each + 1) + 1).contains(&received), "{received} bytes");
        assert!(tally.traffic.bytes_sent > 4 * 50, "{:?}", tally.traffic);
    }
}

#[test]
fn setup_is_cut_into_statements_where_postgresql_would() {
    let statements = ["DO $$BEGIN PERFORM 1; PERFORM 2; END$$", r"SELECT E'it\'s; one'", "SET a.b = 'c'"];
    for per_request in [false, true] {
        let (port, queries) = server(usize::MAX);
        let setup = statements.join("; ");
        let opened = connect_to(port, &serde_json::json!({"setup": setup, "per_request": per_request})).unwrap();
        assert_eq!(*queries.lock().unwrap(), statements);
        if per_request {
            queries.lock().unwrap().clear();
            assert_eq!(run(opened, 1).errors, 0);
            assert_eq!(*queries.lock().unwrap(), statements);
        }
    }
}
