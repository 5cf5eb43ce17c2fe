//! A statement `THINK $1`: time in which the client waits for nobody. Shared by the drivers that support it.

use crate::clock::{now_ns, sleep_until};
use crate::connection::Step;
use crate::failure::{Failure, Result};
use crate::program::{Operation, Parameter, Room, Statement};

/// A statement that thinks, as in its script.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Think {
    /// This many microseconds.
    For(u64),
    /// As many microseconds as this variable's value.
    Drawn(usize),
}

/// One hour, the maximum of a latency.
const LONGEST_US: u64 = 3_600_000_000;

impl Think {
    /// Parses `THINK $1` and `THINK 500000`; None: it is a different statement.
    pub fn read(statement: &Statement) -> Result<Option<Think>> {
        let mut words = statement.sql.split_whitespace();
        if words.next() != Some("THINK") {
            return Ok(None);
        }
        let bad = || Failure::statement(format!("{:?}: write THINK $1, the value in microseconds", statement.sql));
        let (time, None) = (words.next().ok_or_else(bad)?, words.next()) else { return Err(bad()) };
        if let Some(number) = time.strip_prefix('$') {
            let number: usize = number.parse().map_err(|_| bad())?;
            let variable = number.checked_sub(1).and_then(|at| statement.parameters.get(at)).ok_or_else(bad)?;
            return Ok(Some(Think::Drawn(*variable)));
        }
        microseconds(time.as_bytes()).map(|time| Some(Think::For(time)))
    }

    /// How long this operation thinks here.
    fn ns(self, operation: &Operation) -> Result<u64> {
        let time = match self {
            Think::For(time) => time,
            Think::Drawn(variable) => match operation.parameter(variable) {
                Parameter::Integer(time) => within_bounds(u64::try_from(time).ok(), &time.to_string())?,
                other => microseconds(other.text(&mut Room::default()).unwrap_or_default())?,
            },
        };
        Ok(time * 1_000)
    }
}

fn microseconds(text: &[u8]) -> Result<u64> {
    let text = String::from_utf8_lossy(text);
    within_bounds(text.parse().ok(), &text)
}

fn within_bounds(time: Option<u64>, said: &str) -> Result<u64> {
    let bad = || Failure::statement(format!("THINK {said}: must be microseconds, from 0 to {LONGEST_US}"));
    time.filter(|time| *time <= LONGEST_US).ok_or_else(bad)
}

/// A connection's think time.
#[derive(Debug, Default)]
pub struct Thinking {
    on: bool,
    /// When the think time ends; 0: there is none.
    until_ns: u64,
    thought_ns: u64,
}

impl Thinking {
    /// For the connection's `thinks`.
    pub fn turn(&mut self, on: bool) {
        *self = Thinking { on, ..Thinking::default() };
    }

    pub fn is_on(&self) -> bool {
        self.on
    }

    /// At the beginning of an operation.
    #[inline]
    pub fn clear(&mut self) {
        self.until_ns = 0;
        self.thought_ns = 0;
    }

    /// Begins to think. `Done`: there is nothing to wait for; otherwise `go_on` reports the end.
    pub fn begin(&mut self, think: Think, operation: &Operation) -> Result<Step> {
        let ns = think.ns(operation)?;
        if !self.on || ns == 0 {
            return Ok(Step::Done);
        }
        self.sleep(ns);
        Ok(Step::Pending)
    }

    /// Begins to wait, also where nobody thinks; `go_on` reports the end.
    pub fn sleep(&mut self, ns: u64) {
        self.until_ns = now_ns() + ns;
        // The requested time, not the actual one: noticing the end late is our own slowness and counts.
        self.thought_ns += ns;
    }

    /// Continues thinking: a polled connection checks the clock, any other sleeps.
    pub fn go_on(&mut self, polled: bool) -> Step {
        while now_ns() < self.until_ns {
            if polled {
                return Step::Pending;
            }
            sleep_until(self.until_ns);
        }
        self.until_ns = 0;
        Step::Done
    }

    /// For the connection's `wakes`.
    #[inline]
    pub fn wakes(&self) -> Option<u64> {
        (self.until_ns > 0).then_some(self.until_ns)
    }

    /// For the connection's `thought_ns`.
    #[inline]
    pub fn thought_ns(&self) -> u64 {
        self.thought_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Kind;
    use crate::program::{Program, Script};

    fn script(sql: &str, kind: Kind) -> Script {
        let mut program = Program::new("p".into());
        program.add_variable("time".into(), kind).unwrap();
        program.add_transaction("t".into(), 1).unwrap();
        program.add_statement("t", None, sql.into(), "time", false).unwrap();
        program.script("plain").unwrap()
    }

    fn read(sql: &str) -> Result<Option<Think>> {
        Think::read(&script(sql, Kind::Uniform { low: 1, high: 1 }).statements[0])
    }

    #[test]
    fn think_statements_are_recognised() {
        assert_eq!(read("THINK $1").unwrap(), Some(Think::Drawn(0)));
        assert_eq!(read("THINK 500").unwrap(), Some(Think::For(500)));
        for other in ["SELECT $1", "GET /THINK", "THINKING $1", ""] {
            assert_eq!(read(other).unwrap(), None, "{other}");
        }
        for bad in ["THINK", "THINK $2", "THINK $0", "THINK $", "THINK $1 $1", "THINK soon", "THINK -1", "THINK 9e9"] {
            assert_eq!(read(bad).unwrap_err().code, "statement", "{bad}");
        }
    }

    #[test]
    fn think_times_are_off_by_default_and_add_up() {
        let script = script("THINK $1", Kind::Constant { value: "200".into() });
        let (mut operation, mut thinking) = (Operation::default(), Thinking::default());
        script.draw(0, 0, &mut operation);
        let think = Think::Drawn(0);
        assert_eq!(thinking.begin(think, &operation).unwrap(), Step::Done);
        thinking.turn(true);
        for polled in [true, false] {
            let began = now_ns();
            assert_eq!(thinking.begin(think, &operation).unwrap(), Step::Pending);
            let due = thinking.wakes().unwrap();
            assert!(due >= began + 200_000);
            while thinking.go_on(polled) == Step::Pending {
                assert!(polled);
            }
            assert!(now_ns() >= due && thinking.wakes().is_none());
        }
        assert_eq!(thinking.thought_ns(), 400_000);
        thinking.clear();
        assert_eq!(thinking.thought_ns(), 0);
    }

    #[test]
    fn an_invalid_think_time_fails_the_operation() {
        for kind in [Kind::Uniform { low: -5, high: -5 }, Kind::Text { length: 3 }, Kind::Sequence { low: i64::MAX }] {
            let (script, mut operation) = (script("THINK $1", kind), Operation::default());
            script.draw(0, 0, &mut operation);
            assert_eq!(Thinking::default().begin(Think::Drawn(0), &operation).unwrap_err().code, "statement");
        }
    }
}
