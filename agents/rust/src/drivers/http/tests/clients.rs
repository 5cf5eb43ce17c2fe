//! Arms of the driver under test, and their load.

use crate::arm::{Arm, Opened};
use crate::draw::Kind;
use crate::drivers::http::connect_by;
use crate::drivers::http::one::One;
use crate::drivers::http::site::Patience;
use crate::drivers::http::two::Two;
use crate::failure::Result;
use crate::load::{Plan, Tally};
use crate::message::{Arrivals, Connect, HttpVersion, Line, Request};
use crate::program::{Program, Script};
use std::sync::Arc;

pub const SECOND_NS: u64 = 1_000_000_000;

/// Longer than a busy machine stops a server's thread.
const PATIENT: Patience = Patience { answer: 20, open: 20 };

/// For responses that do not come.
pub const IN_A_MOMENT: Patience = Patience { answer: 1, ..PATIENT };

/// Connects as a message would; `fields` are additional fields.
pub fn connect_to(port: u16, fields: &str) -> Result<Opened> {
    connect_with(PATIENT, port, fields)
}

fn connect_with(patience: Patience, port: u16, fields: &str) -> Result<Opened> {
    let line = format!(r#"{{"type":"connect","driver":"http","arm":"a","host":"127.0.0.1","port":{port}{fields}}}"#);
    match Line::read(line.as_bytes()).and_then(Line::request)? {
        Request::Connect(Connect::Http(pool, asked)) if asked.http == HttpVersion::V2 => {
            connect_by::<Two>(&pool, &asked, patience)
        }
        Request::Connect(Connect::Http(pool, asked)) => connect_by::<One>(&pool, &asked, patience),
        other => panic!("{other:?}"),
    }
}

pub fn arm(port: u16, fields: &str) -> Box<dyn Arm> {
    arm_with(PATIENT, port, fields)
}

pub fn arm_with(patience: Patience, port: u16, fields: &str) -> Box<dyn Arm> {
    connect_with(patience, port, fields).unwrap_or_else(|failure| panic!("{failure}")).0
}

/// Runs so many operations of these statements, with `v` for a value.
pub fn run(arm: &mut dyn Arm, statements: &[&str], value: Kind, operations: u64) -> Tally {
    let script = script(statements, value);
    arm.slice(&script, &so_many(operations), &mut || ()).unwrap().tally
}

pub fn script(statements: &[&str], value: Kind) -> Arc<Script> {
    let mut program = Program::new("p".into());
    program.add_variable("v".into(), value).unwrap();
    program.add_transaction("t".into(), 1).unwrap();
    for sql in statements {
        let parameters = if sql.contains('$') { "v" } else { "" };
        program.add_statement("t", None, sql.to_string(), parameters, false).unwrap();
    }
    Arc::new(program.script("a").unwrap())
}

pub fn so_many(operations: u64) -> Plan {
    Plan {
        length_ns: 60 * SECOND_NS,
        discard_ns: 0,
        seed: 1,
        interval_ns: None,
        arrivals: Arrivals::Even,
        due_us: None,
        operations: Some(operations),
        silence_ns: 120_000_000_000,
    }
}

pub fn number() -> Kind {
    Kind::Sequence { low: 7 }
}

/// In every way of waiting: one blocking connection, and two polled ones, each kept alive or one per operation.
pub const WAYS: [&str; 4] =
    ["", r#","connections":2"#, r#","per_request":true"#, r#","connections":2,"per_request":true"#];

/// Checks that every request for this path fails with this kind and these words.
pub fn fails(port: u16, way: &str, path: &str, kind: &str, words: &str) {
    let (rows, kinds, text) = outcome(port, way, &format!("GET /{path}"));
    assert_eq!((rows, kinds), (0, format!("{kind}=4")), "{way} {path}: {text}");
    assert!(text.contains(words), "{way} {path}: {text}");
}

/// Result of four operations: rows, errors by kind, and the first error.
pub fn outcome(port: u16, way: &str, sql: &str) -> (u64, String, String) {
    let tally = run(&mut *arm(port, way), &[sql], number(), 4);
    (tally.rows, tally.kinds.spell(), tally.first_error)
}

pub const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

pub fn begun(row: &str, columns: usize) -> String {
    row.split('\t').take(columns).collect::<Vec<_>>().join("\t")
}
