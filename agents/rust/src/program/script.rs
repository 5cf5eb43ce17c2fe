//! The program as one arm runs it, and one drawn operation.

use crate::decimal::{DIGITS, decimal};
use crate::draw::{Kind, Random, Value};
use crate::envelope::{self, Key};
use std::cell::Cell;
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
    /// Of a request: its own headers, one a line.
    pub headers: String,
    /// Of a request: its body, which has no values in it. None: the text has it.
    pub body: Option<String>,
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
    pub(super) kinds: Vec<Kind>,
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
    /// Which variables are sealed values, and of which others.
    pub(super) sealed: Vec<(usize, usize)>,
}

/// One drawn operation: its statements and values. Reused, so that drawing doesn't allocate.
#[derive(Debug, Default)]
pub struct Operation {
    /// Its statements in the script: `first..last`.
    pub first: usize,
    pub last: usize,
    /// Number of its sealed values.
    pub sealed: u64,
    values: Vec<Value>,
    texts: Vec<u8>,
    /// In a loop: the current value.
    turn: Cell<i64>,
}

impl Script {
    pub fn draw(&self, seed: u64, number: u64, operation: &mut Operation) {
        let mut random = Random::of_operation(seed, number);
        let drawn = match self.transactions.as_slice() {
            [only] => only,
            several => {
                let ticket = random.below(self.weight);
                several.iter().find(|drawn| ticket < drawn.up_to).expect("tickets are below the last sum")
            }
        };
        operation.first = drawn.first;
        operation.last = drawn.last;
        operation.texts.clear();
        operation.values.resize(self.kinds.len(), Value::Unset);
        for &variable in &drawn.variables {
            operation.values[variable] =
                self.kinds[variable].draw(&mut random, &self.counters[variable], &mut operation.texts);
        }
        self.enter(operation, drawn.first);
        operation.sealed = drawn.sealed.len() as u64;
        if !drawn.sealed.is_empty() {
            operation.seal(&drawn.sealed);
        }
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

    /// Whether a variable's value is bytes instead of text.
    pub fn is_sealed(&self, variable: usize) -> bool {
        matches!(self.kinds[variable], Kind::Sealed { .. })
    }
}

/// A value as a driver sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameter<'a> {
    Integer(i64),
    Text(&'a [u8]),
    /// Not text: a sealed value.
    Bytes(&'a [u8]),
}

impl Operation {
    /// An operation whose only value is this text.
    #[cfg(any(test, fuzzing))]
    pub fn of_text(text: &str) -> Operation {
        let values = vec![Value::Text { start: 0, end: text.len() }];
        Operation { values, texts: text.into(), ..Operation::default() }
    }

    /// Seals the value of each pair's second variable with its own nonce. Numbers are sealed as decimal digits.
    fn seal(&mut self, sealed: &[(usize, usize)]) {
        envelope::with(|vault, _| {
            for &(variable, of) in sealed {
                let (start, end) = match self.values[of] {
                    Value::Integer(value) => {
                        let start = self.texts.len();
                        self.texts.extend_from_slice(decimal(value, &mut [0; DIGITS]));
                        (start, self.texts.len())
                    }
                    Value::Text { start, end } | Value::Bytes { start, end } => (start, end),
                    Value::Unset | Value::Turn => (0, 0),
                };
                let at = self.texts.len();
                vault.seal(&mut self.texts, start, end).expect("AES-GCM seals whatever it is given");
                self.values[variable] = Value::Bytes { start: at, end: self.texts.len() };
            }
        });
    }

    /// Forgets its values, and gives back the memory of large ones.
    pub fn clear(&mut self) {
        const FEW_BYTES: usize = 4096;
        self.values.clear();
        self.texts.clear();
        if self.texts.capacity() > FEW_BYTES {
            self.texts = Vec::new();
        }
    }

    #[inline]
    pub fn parameter(&self, variable: usize) -> Parameter<'_> {
        match self.values[variable] {
            Value::Integer(value) => Parameter::Integer(value),
            Value::Text { start, end } => Parameter::Text(&self.texts[start..end]),
            Value::Bytes { start, end } => Parameter::Bytes(&self.texts[start..end]),
            Value::Turn => Parameter::Integer(self.turn.get()),
            Value::Unset => Parameter::Text(&[]),
        }
    }
}
