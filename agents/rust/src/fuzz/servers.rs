//! What a server sends: every driver logs in, queries and runs operations on a server that says the input.
//!
//! An input is four bytes, options and a cut plan, then what the server says: flights, separated by `NEXT`. The driver meets
//! each server twice: once each flight arrives at once, once in pieces. What it makes of both must be the same.

use crate::connection::{Connection, Step};
use crate::envelope;
use crate::failure::{Result, one_line};
use crate::message::{Connect, Line, Request};
use crate::program::{Operation, Script};
use crate::session::{self, Session};
use crate::transport::scripted::{self, Echo, Speech};
use crate::xxh3::xxh3_64;
use serde_json::Value;
use std::sync::Arc;

/// Between two flights.
const NEXT: &[u8] = b"<-->";
/// Before a number of two bytes and a byte: four times as many of it. So a short input fills buffers.
const REPEATED: &[u8] = b"<**>";
const MOST_SAID: usize = 300_000;
/// How often an outcome is repeated to see whether it is random.
const TRIES: usize = 20;
/// The nonce of SCRAM, which the server repeats.
const ECHO: Echo = Echo { after: b"r=", stand_in: b"<the client's own nonce>" };

pub struct Driver {
    /// The program, the connection, a query and a slice, as the agent's protocol spells them.
    requests: &'static str,
    /// A refusal of bytes that have arrived too early: in pieces they may arrive later.
    early: Option<&'static str>,
    /// Whether a difference counts if the server was at fault. HTTP refuses bytes behind a response if it sees them.
    always: bool,
}

const fn driver(requests: &'static str) -> Driver {
    Driver { requests, early: None, always: true }
}

pub const POSTGRES: Driver = driver(include_str!("requests/postgres.jsonl"));
pub const MYSQL: Driver = Driver { early: Some("behind its greeting"), ..driver(include_str!("requests/mysql.jsonl")) };
pub const FIREBIRD: Driver = driver(include_str!("requests/firebird.jsonl"));
pub const HTTP_1: Driver = Driver { always: false, ..driver(include_str!("requests/http-1.jsonl")) };
pub const HTTP_2: Driver = Driver { always: false, ..driver(include_str!("requests/http-2.jsonl")) };
pub const RESP: Driver = driver(include_str!("requests/resp.jsonl"));
pub const MEMCACHED: Driver = driver(include_str!("requests/memcached.jsonl"));

/// Two connections share a thread: they never wait.
pub const POLLED: u8 = 1;
const PER_REQUEST: u8 = 2;
const NO_PASSWORD: u8 = 4;
/// Firebird's wire encryption, whose beginning nothing in clear may follow.
const WIRE_CRYPT: u8 = 8;

/// What became of a driver's requests.
#[derive(Debug, PartialEq)]
pub struct Transcript {
    pub lines: Vec<String>,
    /// Every request was answered, even if the answer is an error.
    pub complete: bool,
    /// No operation failed.
    pub faultless: bool,
}

pub fn meet(driver: &Driver, data: &[u8]) {
    let [options, a, b, c, said @ ..] = data else { return };
    let at_once = talk(driver, *options, said, &[]);
    let cuts = [*a, *b, *c].map(usize::from);
    let in_pieces = talk(driver, *options, said, &cuts);
    let early = driver.early.is_some_and(|text| at_once.lines.iter().any(|line| line.contains(text)));
    let counts = (driver.always && options & WIRE_CRYPT == 0 && !early) || at_once.faultless;
    if counts && at_once != in_pieces {
        // The client's nonce is random. A hostile server that repeats it elsewhere makes the outcome random too.
        let agree = (0..TRIES).any(|_| {
            let again = talk(driver, *options, said, &[]);
            again != at_once || again == talk(driver, *options, said, &cuts)
        });
        assert!(agree, "the same bytes, cut elsewhere: {at_once:?}, and in pieces {in_pieces:?}");
    }
}

/// Sends a driver's requests to a server that says this.
pub fn talk(driver: &Driver, options: u8, said: &[u8], cuts: &[usize]) -> Transcript {
    let speech = Speech { flights: flights(said), cuts: cuts.to_vec(), echo: Some(ECHO) };
    let mut transcript = Transcript { lines: Vec::new(), complete: true, faultless: true };
    scripted::with(speech, || {
        if let Err(failure) = run(driver, options, &mut transcript) {
            transcript.note(&failure.to_string());
            (transcript.complete, transcript.faultless) = (false, false);
        }
    });
    envelope::enter(None).expect("no key, no cipher");
    transcript
}

/// The flights of an input. Their length is limited, since `REPEATED` makes much of little.
fn flights(said: &[u8]) -> Vec<Vec<u8>> {
    let (mut found, mut flight, mut rest, mut room) = (Vec::new(), Vec::new(), said, MOST_SAID);
    while let Some((first, more)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(NEXT) {
            found.push(std::mem::take(&mut flight));
            rest = after;
        } else if let Some([high, low, byte, after @ ..]) = rest.strip_prefix(REPEATED) {
            let count = usize::from(u16::from_be_bytes([*high, *low])).saturating_mul(4).min(room);
            flight.resize(flight.len() + count, *byte);
            room -= count;
            rest = after;
        } else {
            flight.push(*first);
            rest = more;
        }
    }
    found.push(flight);
    found
}

fn run(driver: &Driver, options: u8, transcript: &mut Transcript) -> Result<()> {
    let (mut session, mut arm) = (Session::default(), None);
    for line in driver.requests.lines() {
        match Line::read(line.as_bytes()).and_then(Line::request)? {
            Request::Connect(_) => {
                let (opened, connected) = session::open(&connect(line, options)?)?;
                transcript.note(&serde_json::to_string(&connected).expect("an answer is JSON"));
                arm = Some(opened);
            }
            Request::Query(asked) => {
                let rows = arm.as_mut().expect("it is connected").query(&asked.sql, false);
                transcript.note(&format!("{rows:?}"));
                if let Err(failure) = rows {
                    transcript.faultless = false;
                    if failure.lost {
                        return Err(failure);
                    }
                }
            }
            Request::Slice(asked) => {
                let script = Arc::new(session.program()?.script("a")?);
                let connection = arm.as_mut().expect("it is connected").first();
                run_operations(connection, &script, asked.operations, transcript)?;
            }
            _ => drop(session.answer(line.as_bytes(), &mut |_| ())),
        }
    }
    Ok(())
}

/// The request of `connect` with the input's options.
fn connect(line: &str, options: u8) -> Result<Connect> {
    let mut fields: Value = serde_json::from_str(line).expect("requests are JSON");
    if options & POLLED != 0 {
        fields["connections"] = 2.into();
    }
    if options & PER_REQUEST != 0 {
        fields["per_request"] = true.into();
    }
    if options & NO_PASSWORD != 0 {
        fields.as_object_mut().expect("an object").remove("password");
    }
    if options & WIRE_CRYPT != 0 && fields["driver"] == "firebird" {
        fields["wire_crypt"] = "require".into();
    }
    match Line::read(fields.to_string().as_bytes()).and_then(Line::request)? {
        Request::Connect(connect) => connect.check().map(|()| connect),
        other => panic!("{other:?}"),
    }
}

fn run_operations(
    connection: &mut dyn Connection,
    script: &Arc<Script>,
    operations: u64,
    transcript: &mut Transcript,
) -> Result<()> {
    envelope::enter(script.cipher.as_ref())?;
    connection.prepare(script)?;
    let mut operation = Operation::default();
    for number in 0..operations {
        script.draw(0, number, &mut operation);
        let mut step = connection.begin(script, &mut operation)?;
        while step == Step::Pending {
            step = connection.proceed(script, &mut operation)?;
        }
        let outcome = connection.outcome();
        transcript.faultless &= outcome.error.is_none();
        transcript.note(&format!("{outcome:?}"));
    }
    Ok(())
}

/// The text without what follows the marks of nonces: they are random.
fn without_nonces(text: &str) -> String {
    let mark = std::str::from_utf8(ECHO.after).expect("it is text");
    let mut parts = text.split(mark);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(mark);
        kept.extend(part.chars().skip(ECHO.stand_in.len()));
    }
    kept
}

impl Transcript {
    /// Adds a line, shortened where it is long.
    fn note(&mut self, text: &str) {
        let text = &without_nonces(text);
        self.lines.push(format!("{} ({:016x})", one_line(text, 400), xxh3_64(text.as_bytes())));
    }
}
