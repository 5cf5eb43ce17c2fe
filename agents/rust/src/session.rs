//! Handles requests in order. Holds the program and the arms; a refused request changes nothing.

use crate::arm::{Arm, Opened};
use crate::cpu;
use crate::deadline;
use crate::draw::{Kind, Zipf};
use crate::drivers::key_value::KeyValue;
use crate::drivers::memcached::Memcached;
use crate::drivers::mysql::Mysql;
use crate::drivers::postgres::Postgres;
use crate::drivers::resp::Resp;
use crate::drivers::{duckdb, firebird, http, network, null, sqlite, turso};
use crate::envelope::Key;
use crate::failure::{Failure, Result};
use crate::files;
use crate::floor;
use crate::load::Plan;
use crate::message::{self, Answer, Connect, Line, Request, SliceAnswer};
use crate::program::{IntoVariables, Program, Step};
use crate::transport::tls;
use std::collections::HashMap;
use std::sync::Arc;

pub const PROTOCOL: u64 = 1;

#[derive(Default)]
pub struct Session {
    greeted: bool,
    program: Option<Program>,
    arms: HashMap<String, Box<dyn Arm>>,
    /// The most files that each arm has open.
    files: HashMap<String, usize>,
}

/// What follows an answer.
#[derive(Debug, PartialEq)]
pub enum Next {
    GoOn,
    /// The agent ends with this status.
    End(i32),
}

impl Session {
    /// Answers one line. `say` sends the event that precedes a slice's answer.
    pub fn answer(&mut self, line: &[u8], say: &mut dyn FnMut(&Answer)) -> (Answer, Next) {
        let mut next = Next::GoOn;
        let answer = self.handle(line, say, &mut next).unwrap_or_else(Answer::from);
        (answer, next)
    }

    fn handle(&mut self, line: &[u8], say: &mut dyn FnMut(&Answer), next: &mut Next) -> Result<Answer> {
        let line = Line::read(line)?;
        if !self.greeted && line.kind != "hello" {
            return Err(Failure::protocol("send `hello` first"));
        }
        match line.request()? {
            Request::Hello(hello) => self.hello(&hello, next),
            Request::Program(program) => {
                self.program =
                    Some(Program::new(program.name).traveling(program.mode, program.tries).drawing(program.draw));
                Ok(Answer::Ok {})
            }
            Request::Variable(variable) => {
                match (kind(&variable)?, variable.of) {
                    (Some(kind), _) => self.program()?.add_variable(variable.name, kind)?,
                    (None, of) => self.program()?.add_made(variable.name, &of.unwrap_or_default(), variable.bits)?,
                }
                Ok(Answer::Ok {})
            }
            Request::Cipher(asked) => {
                let key = Key::read(&asked.name, &asked.key, asked.blind.as_deref())?;
                self.program()?.set_cipher(key)?;
                Ok(Answer::Ok {})
            }
            Request::Transaction(asked) => {
                self.program()?.add_transaction(asked.name, asked.weight)?;
                Ok(Answer::Ok {})
            }
            Request::Statement(asked) => {
                self.program()?.add_statement(
                    &asked.transaction,
                    asked.arm,
                    asked.sql,
                    &asked.parameters,
                    asked.open,
                )?;
                if !asked.keep.is_empty() {
                    self.program()?.keep_rows(&asked.transaction, &asked.keep)?;
                }
                self.program()?.complete_request(&asked.transaction, asked.headers, asked.body);
                if let Some(prefix) = asked.into {
                    self.program()?.capture(&asked.transaction, IntoVariables { prefix, every: asked.every });
                }
                Ok(Answer::Ok {})
            }
            Request::Step(asked) => {
                let program = self.program()?;
                let step = step(&asked, program)?;
                program.add_step(&asked.transaction, asked.arm, step)?;
                Ok(Answer::Ok {})
            }
            Request::Connect(connect) => self.connect(connect),
            Request::Query(query) => {
                let seconds = message::seconds(query.timeout, deadline::QUERY_SECONDS)?;
                let arm = self.arms.get_mut(&query.arm).ok_or_else(|| Failure::no_arm(&query.arm))?;
                let rows = deadline::within(seconds, "finish its answer", || arm.query(&query.sql, query.all));
                let rows = self.keep_unless_lost(&query.arm, rows)?;
                Ok(Answer::Rows { rows: rows.rows, columns: rows.columns, text: rows.text })
            }
            Request::Slice(slice) => self.slice(&slice, say),
            Request::Floor(asked) => {
                let found = floor::measure(&asked)?;
                Ok(Answer::Floor {
                    cipher: asked.cipher,
                    bytes: found.bytes,
                    ns_per_byte_seal: found.seal_ns_per_byte,
                    ns_per_byte_open: found.open_ns_per_byte,
                    library: tls::library(),
                })
            }
            Request::Disconnect(disconnect) => match self.arms.remove(&disconnect.arm) {
                Some(_) => Ok(Answer::Ok {}),
                None => Err(Failure::no_arm(&disconnect.arm)),
            },
            Request::Bye(_) => {
                self.arms.clear();
                *next = Next::End(0);
                Ok(Answer::Ok {})
            }
        }
    }

    fn hello(&mut self, hello: &message::Hello, next: &mut Next) -> Result<Answer> {
        if self.greeted {
            return Err(Failure::protocol("`hello` was already sent"));
        }
        if hello.protocol != PROTOCOL {
            *next = Next::End(2);
            let text = format!("this agent speaks protocol {PROTOCOL}, not {}", hello.protocol);
            return Err(Failure::protocol(text));
        }
        self.greeted = true;
        Ok(Answer::Hello {
            protocol: PROTOCOL,
            agent: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            drivers: message::DRIVERS,
            tls_library: tls::library(),
            aes: cpu::aes_instructions(),
        })
    }

    pub fn program(&mut self) -> Result<&mut Program> {
        self.program.as_mut().ok_or_else(|| Failure::no_program("send `program` first"))
    }

    fn connect(&mut self, connect: Connect) -> Result<Answer> {
        connect.check()?;
        let pool = connect.pool();
        let others = self.arms.keys().filter(|arm| **arm != pool.arm);
        let taken = others.filter_map(|arm| self.files.get(arm)).sum();
        files::check(connect.files(), taken)?;
        self.arms.remove(&pool.arm);
        self.files.insert(pool.arm.clone(), connect.files());
        let seconds = pool.seconds() * deadline::of_all(pool.connections);
        let (arm, connected) = deadline::within(seconds, "open all connections", || open(&connect))?;
        let mut connected = connected.bounded();
        connected.arm.clone_from(&pool.arm);
        connected.connections = pool.connections;
        self.arms.insert(pool.arm.clone(), arm);
        Ok(Answer::Connected(Box::new(connected)))
    }

    fn slice(&mut self, asked: &message::Slice, say: &mut dyn FnMut(&Answer)) -> Result<Answer> {
        let plan = plan(asked)?;
        if !self.arms.contains_key(&asked.arm) {
            return Err(Failure::no_arm(&asked.arm));
        }
        let script = Arc::new(self.program()?.script(&asked.arm)?);
        let arm = self.arms.get_mut(&asked.arm).ok_or_else(|| Failure::no_arm(&asked.arm))?;
        let mut counting = || say(&Answer::Counting { arm: asked.arm.clone() });
        let total = arm.slice(&script, &plan, &mut counting);
        let total = self.keep_unless_lost(&asked.arm, total)?;
        let tally = total.tally;
        Ok(Answer::Slice(Box::new(SliceAnswer {
            arm: asked.arm.clone(),
            seconds: total.seconds,
            operations: tally.operations,
            work: tally.work,
            errors: tally.errors,
            error_kinds: tally.kinds.spell(),
            rows: tally.rows,
            sealed: tally.sealed,
            opened: tally.opened,
            retries: tally.retries,
            checksum: format!("{:016x}", tally.checksum),
            cpu_user_ns: tally.cpu.user_ns,
            cpu_system_ns: tally.cpu.system_ns,
            bytes_sent: tally.traffic.bytes_sent,
            bytes_received: tally.traffic.bytes_received,
            segments_sent: tally.traffic.segments_sent,
            segments_received: tally.traffic.segments_received,
            connects: tally.traffic.connects,
            resumed: tally.traffic.resumed,
            early: tally.traffic.early,
            late: tally.late,
            threads: total.threads,
            histogram: tally.latencies.encode(),
            first_error: tally.first_error.replace(['\n', '\r'], " "),
        })))
    }

    /// Disconnects an arm that lost a connection: a run on the remaining ones would not be what was requested.
    fn keep_unless_lost<T>(&mut self, arm: &str, result: Result<T>) -> Result<T> {
        if result.as_ref().is_err_and(|failure| failure.lost) {
            self.arms.remove(arm);
        }
        result
    }

    /// After a crash the arms are in no known state.
    pub fn forget_arms(&mut self) {
        self.arms.clear();
    }
}

/// Opens an arm's connections by its driver.
pub fn open(connect: &Connect) -> Result<Opened> {
    match connect {
        Connect::Null(pool, asked) => null::connect(pool, asked),
        Connect::Postgres(pool, asked) => network::connect::<Postgres>(pool, asked),
        Connect::Mysql(pool, asked) => network::connect::<Mysql>(pool, asked),
        Connect::Resp(pool, asked) => network::connect::<KeyValue<Resp>>(pool, asked),
        Connect::Memcached(pool, asked) => network::connect::<KeyValue<Memcached>>(pool, asked),
        Connect::Sqlite(pool, asked) => sqlite::connect(pool, asked),
        Connect::DuckDb(pool, asked) => duckdb::connect(pool, asked),
        Connect::Turso(pool, asked) => turso::connect(pool, asked),
        Connect::Firebird(pool, asked) => firebird::connect(pool, asked),
        Connect::Http(pool, asked) => http::connect(pool, asked),
    }
}

/// The step, which takes its own fields and no others.
fn step(asked: &message::Step, program: &Program) -> Result<Step> {
    let missing = |field: &str| Failure::bad_message(format!("{field}: is missing for a step {:?}", asked.what));
    let takes = |variable: bool, expression: bool| {
        for (field, wanted, given) in
            [("variable", variable, asked.variable.is_some()), ("expression", expression, asked.expression.is_some())]
        {
            if given && !wanted {
                return Err(Failure::bad_message(format!("{field}: is not a field of a step {:?}", asked.what)));
            }
        }
        Ok(())
    };
    let expression = || {
        let text = asked.expression.as_deref().ok_or_else(|| missing("expression"))?;
        program.expression(text)
    };
    Ok(match asked.what.as_str() {
        "set" => {
            let name = asked.variable.as_deref().ok_or_else(|| missing("variable"))?;
            let unknown = || Failure::bad_message(format!("variable: no variable {name:?} is declared"));
            Step::Set { variable: program.variable(name).ok_or_else(unknown)?, to: expression()? }
        }
        what @ ("if" | "elif" | "sleep") => {
            takes(false, true)?;
            match what {
                "if" => Step::If(expression()?),
                "elif" => Step::ElseIf(expression()?),
                _ => Step::Sleep(expression()?),
            }
        }
        what => {
            takes(false, false)?;
            match what {
                "else" => Step::Else,
                "endif" => Step::EndIf,
                "startpipeline" => Step::StartPipeline,
                "syncpipeline" => Step::Sync,
                "endpipeline" => Step::EndPipeline,
                other => return Err(Failure::bad_message(format!("do: {other:?} is not known"))),
            }
        }
    })
}

/// The variable's kind, which takes its own fields and no others. None: it is the sealed value of another variable.
fn kind(asked: &message::Variable) -> Result<Option<Kind>> {
    let given = [
        ("low", asked.low.is_some()),
        ("high", asked.high.is_some()),
        ("skew", asked.skew.is_some()),
        ("length", asked.length.is_some()),
        ("value", asked.value.is_some()),
        ("of", asked.of.is_some()),
        ("bits", asked.bits.is_some()),
    ];
    let wanted: &[&str] = match asked.kind.as_str() {
        "uniform" => &["low", "high"],
        "zipfian" => &["low", "high", "skew"],
        "sequence" => &["low"],
        "text" => &["length"],
        "constant" => &["value"],
        "each" => &["low", "high"],
        "sealed" => &["of"],
        "computed" | "client" => &[],
        "blind" => &["of", "bits"],
        other => return Err(Failure::bad_message(format!("kind: {other:?} is not known"))),
    };
    for (name, there) in given {
        if there != wanted.contains(&name) {
            let what = if there { "is not a field of" } else { "is missing for" };
            return Err(Failure::bad_message(format!("{name}: {what} kind {:?}", asked.kind)));
        }
    }
    let (low, high) = (asked.low.unwrap_or(0), asked.high.unwrap_or(i64::MAX));
    if low > high {
        return Err(Failure::bad_message("low: must not be above high"));
    }
    Ok(Some(match asked.kind.as_str() {
        "sealed" | "blind" => return Ok(None),
        "uniform" => Kind::Uniform { low, high },
        "each" => Kind::Each { low, high },
        "zipfian" => {
            let skew = asked.skew.unwrap_or(0.0);
            if !(skew > 0.0 && skew < 100.0) || skew == 1.0 {
                return Err(Failure::bad_message("skew: must be above 0, below 100 and not 1"));
            }
            Kind::Zipfian { low, high, zipf: Zipf::new((high as i128 - low as i128 + 1) as u64, skew) }
        }
        "sequence" => Kind::Sequence { low },
        "computed" => Kind::Computed,
        "client" => Kind::Client,
        "text" => match asked.length.unwrap_or(0) {
            length if length <= LONGEST_TEXT => Kind::Text { length },
            _ => return Err(Failure::bad_message(format!("length: must be at most {LONGEST_TEXT}"))),
        },
        _ => Kind::Constant { value: asked.value.clone().unwrap_or_default() },
    }))
}

const LONGEST_TEXT: usize = 16 << 20;
const LONGEST_SECONDS: f64 = 86_400.0;

/// When requests are due, by the microseconds between them.
fn due_us(gaps: &str) -> Result<Arc<[u64]>> {
    let mut at = 0;
    let times = gaps.split_ascii_whitespace().map(|gap| {
        at = gap
            .parse()
            .ok()
            .and_then(|gap: u64| gap.checked_add(at))
            .filter(|at| *at <= LONGEST_SECONDS as u64 * 1_000_000)?;
        Some(at)
    });
    let wrong =
        || Failure::bad_message("gaps_us: must be whole numbers of at most 86400 s in all, separated by spaces");
    times.collect::<Option<_>>().ok_or_else(wrong)
}

fn plan(asked: &message::Slice) -> Result<Plan> {
    let bad = |text: &str| Err(Failure::bad_message(text));
    let operations = (asked.operations > 0).then_some(asked.operations);
    let seconds = match (asked.seconds, operations) {
        (Some(seconds), _) => seconds,
        (None, Some(_)) => 3600.0,
        (None, None) => return bad("seconds: missing"),
    };
    if !(seconds > 0.0 && seconds <= LONGEST_SECONDS) {
        return bad("seconds: must be above 0 and at most 86400");
    }
    if !(0.0..1.0).contains(&asked.discard) {
        return bad("discard: must be at least 0 and below 1");
    }
    if operations.is_some() && asked.discard != 0.0 {
        return bad("discard: must be 0 if operations are counted");
    }
    if !(0.0..=1e9).contains(&asked.rate) {
        return bad("rate: must lie between 0 and 1e9");
    }
    if asked.arrivals.is_some() && asked.rate == 0.0 {
        return bad("arrivals: only an open loop has them; give a rate");
    }
    if asked.gaps_us.is_some() && (asked.rate == 0.0 || asked.arrivals.is_some()) {
        return bad("gaps_us: only an open loop has them, in place of arrivals; give a rate");
    }
    let due_us = asked.gaps_us.as_deref().map(due_us).transpose()?;
    let length_ns = seconds * 1e9;
    Ok(Plan {
        length_ns: length_ns as u64,
        discard_ns: (length_ns * asked.discard) as u64,
        seed: asked.seed,
        interval_ns: (asked.rate > 0.0).then(|| 1e9 / asked.rate),
        arrivals: asked.arrivals.unwrap_or_default(),
        due_us,
        operations,
        silence_ns: (message::seconds(asked.timeout, deadline::SLICE_SECONDS)? * 1e9) as u64,
    })
}
