//! The program as one arm runs it.

use super::expression::{Expression, Scalar, Variables};
use super::flow::Act;
use super::operation::{BEFORE, Operation};
use crate::draw::{Kind, Random, Value, even};
use crate::draw_mode::Draw;
use crate::envelope::Key;
use crate::failure::{Failure, Result};
use crate::query_mode::QueryMode;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

#[derive(Debug, Default, Clone, PartialEq)]
pub struct Statement {
    pub sql: String,
    /// Indices of variables, in the order of `$1`, `$2`…
    pub parameters: Vec<usize>,
    /// Whether sealed values in its rows are opened.
    pub open: bool,
    /// The variable whose value an opened value must have for its row to count.
    pub keep: Option<usize>,
    /// Of a request: its own headers, one a line.
    pub headers: String,
    /// Of a request: its body, which has no values in it. None: the text has it.
    pub body: Option<String>,
    /// The variables that take the values of its rows.
    pub into: Option<IntoVariables>,
}

/// Where the values of a statement's rows go.
#[derive(Debug, Clone, PartialEq)]
pub struct IntoVariables {
    /// Precedes a column's name in that of its variable.
    pub prefix: String,
    /// The last row counts, if there is any, instead of the only one.
    pub every: bool,
}

/// What an operation does next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// Runs this statement.
    Run(usize),
    /// Waits for so many nanoseconds.
    Sleep(u64),
    /// Asks for the results of a pipeline so far, without waiting for them.
    Sync,
    /// Waits for all results of a pipeline.
    EndPipeline,
    End,
}

/// The program as one arm runs it.
#[derive(Debug, Default)]
pub struct Script {
    pub statements: Vec<Statement>,
    /// The key with which its operations seal and open.
    pub cipher: Option<Key>,
    pub(super) transactions: Vec<Drawn>,
    /// In the order of their statements.
    pub(super) loops: Vec<Loop>,
    pub(super) weight: u64,
    pub(super) draw: Draw,
    pub(super) kinds: Vec<Kind>,
    pub(super) names: Vec<String>,
    pub mode: QueryMode,
    /// How often an operation is tried at most.
    pub tries: u64,
    pub(super) counters: Arc<Vec<AtomicI64>>,
}

/// Statements that run once for each value from `low` to `high`: all of them for one value before the next.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) low: i64,
    pub(super) high: i64,
}

#[derive(Debug)]
pub(super) struct Drawn {
    /// Sum of the weights up to and including this transaction's.
    pub(super) up_to: u64,
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) variables: Vec<usize>,
    /// The variables that are made of others: sealed values, and entries of a blind index.
    pub(super) made: Vec<usize>,
    /// How many of them are sealed values.
    pub(super) sealed: u64,
    /// The variable whose value the rows that it opens must have.
    pub(super) keep: Option<usize>,
    /// Empty: its statements run one after the other.
    pub(super) acts: Vec<Act>,
}

impl Script {
    pub fn draw(&self, seed: u64, number: u64, operation: &mut Operation) {
        self.draw_unless_counted(seed, number, operation, false);
    }

    /// Draws the same operation again, with the same values.
    pub fn draw_again(&self, operation: &mut Operation) {
        self.draw_unless_counted(operation.seed, operation.number, operation, true);
    }

    /// `counted`: its sequences have their numbers already.
    fn draw_unless_counted(&self, seed: u64, number: u64, operation: &mut Operation, counted: bool) {
        let mut random = Random::of_operation(seed, number);
        let transaction = match self.transactions.as_slice() {
            [_] => 0,
            several => {
                let ticket = match self.draw {
                    Draw::Random => random.below(self.weight),
                    Draw::Even => even(Random::new(seed).next(), number, self.weight),
                };
                several.iter().position(|drawn| ticket < drawn.up_to).expect("tickets are below the last sum")
            }
        };
        let drawn = &self.transactions[transaction];
        (operation.seed, operation.number) = (seed, number);
        operation.first = drawn.first;
        operation.last = drawn.last;
        operation.texts.clear();
        operation.values.resize(self.kinds.len(), Value::Unset);
        for &variable in &drawn.variables {
            operation.values[variable] = match &self.kinds[variable] {
                Kind::Client => Value::Integer((number % operation.clients.max(1)) as i64),
                Kind::Sequence { .. } if counted => continue,
                kind => kind.draw(&mut random, &self.counters[variable], &mut operation.texts),
            };
        }
        operation.current = BEFORE;
        operation.decides = !drawn.acts.is_empty();
        if operation.decides {
            (operation.transaction, operation.act, operation.piped) = (transaction, 0, false);
            operation.random = random;
        }
        self.enter(operation, drawn.first);
        operation.sealed = drawn.sealed;
        operation.keep = drawn.keep;
        if !drawn.made.is_empty() {
            operation.make(&drawn.made, &self.kinds);
        }
    }

    /// What the operation does next. An error if an expression has no value.
    #[inline]
    pub fn advance(&self, operation: &mut Operation) -> Result<Next> {
        if operation.decides {
            return self.act(operation);
        }
        let number = match operation.current {
            BEFORE => operation.first,
            current => self.after(operation, current),
        };
        operation.current = number;
        Ok(if number < operation.last { Next::Run(number) } else { Next::End })
    }

    /// Takes steps up to the next one that its connection has to take.
    fn act(&self, operation: &mut Operation) -> Result<Next> {
        let acts = &self.transactions[operation.transaction].acts;
        while let Some(act) = acts.get(operation.act) {
            operation.act += 1;
            match act {
                Act::Run(number) => {
                    operation.current = *number;
                    for &variable in &self.statements[*number].parameters {
                        if operation.is_unset(variable) {
                            return Err(self.unset(variable));
                        }
                    }
                    return Ok(Next::Run(*number));
                }
                Act::Set { variable, to } => {
                    let value = self.value(to, operation)?;
                    operation.set(*variable, value);
                }
                Act::Unless(condition, target) => {
                    if !self.value(condition, operation)?.is_true() {
                        operation.act = *target;
                    }
                }
                Act::Jump(target) => operation.act = *target,
                Act::Sleep(time) => match self.value(time, operation)?.integer()? {
                    ..=0 => {}
                    time if time > LONGEST_SLEEP_US => {
                        return Err(Failure::statement(format!("\\sleep {time} us: at most an hour")));
                    }
                    time => return Ok(Next::Sleep(time as u64 * 1000)),
                },
                Act::StartPipeline => operation.piped = true,
                Act::Sync => return Ok(Next::Sync),
                Act::EndPipeline => {
                    operation.piped = false;
                    return Ok(Next::EndPipeline);
                }
            }
        }
        Ok(Next::End)
    }

    fn value(&self, expression: &Expression, operation: &mut Operation) -> Result<Scalar> {
        let mut random = operation.random.clone();
        let value = expression.evaluate(&Known { script: self, operation }, &mut random);
        operation.random = random;
        value
    }

    fn unset(&self, variable: usize) -> Failure {
        let name = self.names[variable].rsplit('.').next().unwrap_or_default();
        Failure::statement(format!("variable {name} has no value yet"))
    }

    /// The variable for a column of this name: the very name, or else one that differs in case, as Firebird has upper case.
    pub(super) fn variable_for(&self, prefix: &str, column: &str) -> Option<usize> {
        let named = |same: &dyn Fn(&str) -> bool| {
            self.names.iter().position(|name| name.strip_prefix(prefix).is_some_and(same))
        };
        named(&|name| name == column).or_else(|| named(&|name| name.eq_ignore_ascii_case(column)))
    }

    /// Refuses a script that decides, for drivers that only run one statement after the other.
    pub fn must_not_decide(&self, driver: &str) -> Result<()> {
        if self.transactions.iter().any(|drawn| !drawn.acts.is_empty()) {
            return Err(Failure::statement(format!("the {driver} driver runs no scripts with steps")));
        }
        Ok(())
    }

    /// Whether a connection that has prepared its statements has prepared the other script's too.
    pub fn is_prepared_as(&self, other: &Script) -> bool {
        (self.mode, &self.statements, &self.kinds) == (other.mode, &other.statements, &other.kinds)
    }

    /// Refuses what only some drivers can do with statements.
    pub fn check_travel(&self, modes: &[QueryMode], pipelines: bool, server: &str) -> Result<()> {
        if !modes.contains(&self.mode) {
            return Err(Failure::statement(format!("{server}: no statements travel in mode {:?}", self.mode)));
        }
        let mut acts = self.transactions.iter().flat_map(|drawn| &drawn.acts);
        if acts.any(|act| matches!(act, Act::StartPipeline)) && (!pipelines || self.mode == QueryMode::Simple) {
            return Err(Failure::statement(format!("{server}: no pipelines here")));
        }
        Ok(())
    }

    /// The statement after this one; `Operation::last`: none.
    #[inline]
    pub fn after(&self, operation: &Operation, statement: usize) -> usize {
        if self.loops.is_empty() { statement + 1 } else { self.after_in_loops(operation, statement) }
    }

    fn after_in_loops(&self, operation: &Operation, statement: usize) -> usize {
        let next = statement + 1;
        if let Some(body) = self.loops.iter().find(|body| body.last == next) {
            let turn = operation.turn.get();
            if turn < body.high {
                operation.turn.set(turn + 1);
                return body.first;
            }
        }
        self.enter(operation, next);
        next
    }

    /// At the start of a loop, sets its first value.
    #[inline]
    fn enter(&self, operation: &Operation, statement: usize) {
        if let Some(body) = self.loops.iter().find(|body| body.first == statement) {
            operation.turn.set(body.low);
        }
    }

    /// Whether any of its statements runs once per value of a range.
    pub fn has_loops(&self) -> bool {
        !self.loops.is_empty()
    }

    /// Each transaction's statements, with the numbers of `Operation::first` and `last`.
    pub fn transactions(&self) -> impl Iterator<Item = Range<usize>> {
        self.transactions.iter().map(|drawn| drawn.first..drawn.last)
    }

    /// Whether a variable's value, and with it its type, is set while an operation runs.
    pub fn is_computed(&self, variable: usize) -> bool {
        self.kinds[variable] == Kind::Computed
    }

    /// Whether a variable's value is bytes instead of text.
    pub fn is_sealed(&self, variable: usize) -> bool {
        matches!(self.kinds[variable], Kind::Sealed { .. } | Kind::Blind { .. })
    }
}

/// Longest time asleep, in microseconds: an hour.
const LONGEST_SLEEP_US: i64 = 3_600_000_000;

/// The values that an operation has so far.
struct Known<'a> {
    script: &'a Script,
    operation: &'a Operation,
}

impl Variables for Known<'_> {
    fn scalar(&self, variable: usize) -> Result<Scalar> {
        let name = || self.script.names[variable].rsplit('.').next().unwrap_or_default();
        match self.operation.scalar(variable) {
            Some(Ok(scalar)) => Ok(scalar),
            Some(Err(())) => Err(Failure::statement(format!("variable {} is no number, boolean or NULL", name()))),
            None => Err(self.script.unset(variable)),
        }
    }
}
