//! Builds a program from messages: variables, transactions and their statements.

use super::expression::Expression;
use super::flow::{Act, Step, compile};
use super::script::{Drawn, IntoVariables, Loop, Script, Statement};
use crate::draw::Kind;
use crate::draw_mode::Draw;
use crate::envelope::{self, Key};
use crate::failure::{Failure, Result};
use crate::query_mode::QueryMode;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

#[derive(Debug, Default)]
pub struct Program {
    pub name: String,
    mode: QueryMode,
    /// How often an operation is tried at most; 0 and 1: once.
    tries: u64,
    draw: Draw,
    cipher: Option<Key>,
    variables: Vec<(String, Kind)>,
    transactions: Vec<Transaction>,
    /// How often each variable was drawn, by arm: survives slices and reconnections.
    counters: HashMap<String, Arc<Vec<AtomicI64>>>,
}

#[derive(Debug)]
struct Transaction {
    name: String,
    weight: u64,
    statements: Vec<(Option<String>, Statement)>,
    /// Between its statements, each of which is a step too; the arm that takes a step. Only used if some step is no statement.
    steps: Vec<(Option<String>, Step)>,
}

impl Transaction {
    fn decides(&self) -> bool {
        self.steps.len() > self.statements.len()
    }
}

impl Program {
    pub fn new(name: String) -> Program {
        Program { name, ..Program::default() }
    }

    /// How its statements travel, and how often an operation is tried at most.
    pub fn traveling(self, mode: QueryMode, tries: u64) -> Program {
        Program { mode, tries, ..self }
    }

    /// How its transactions are drawn.
    pub fn drawing(self, draw: Draw) -> Program {
        Program { draw, ..self }
    }

    pub fn add_variable(&mut self, name: String, kind: Kind) -> Result<()> {
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(Failure::bad_message(format!("variable name {name:?}: must be one word")));
        }
        if self.variables.iter().any(|(known, _)| *known == name) {
            return Err(Failure::bad_message(format!("variable {name:?} is declared already")));
        }
        self.variables.push((name, kind));
        self.counters.clear();
        Ok(())
    }

    /// Declares a variable that is the sealed value of another one, or its entry in a blind index of so many bits.
    pub fn add_made(&mut self, name: String, of: &str, bits: Option<usize>) -> Result<()> {
        let key = self.cipher()?;
        if bits.is_some() && !key.has_blind() {
            return Err(Failure::bad_message("the cipher has no key for a blind index (`blind`)"));
        }
        if bits.is_some_and(|bits| bits == 0 || bits % 8 != 0 || bits > 8 * envelope::MAC_BYTES) {
            return Err(Failure::bad_message("bits: must be a multiple of 8 from 8 to 256"));
        }
        match self.variables.iter().position(|(known, _)| known == of) {
            Some(at) if matches!(self.variables[at].1, Kind::Sealed { .. } | Kind::Blind { .. }) => {
                Err(Failure::bad_message(format!("of: variable {of:?} is made of another one itself")))
            }
            Some(at) if matches!(self.variables[at].1, Kind::Each { .. }) => {
                Err(Failure::bad_message(format!("of: variable {of:?} is of kind \"each\", which can't be sealed")))
            }
            Some(at) if matches!(self.variables[at].1, Kind::Computed) => {
                Err(Failure::bad_message(format!("of: variable {of:?} is computed, which can't be sealed")))
            }
            Some(at) => {
                let kind = bits.map_or(Kind::Sealed { of: at }, |bits| Kind::Blind { of: at, bytes: bits / 8 });
                self.add_variable(name, kind)
            }
            None => Err(Failure::bad_message(format!("of: no variable {of:?} is declared"))),
        }
    }

    pub fn set_cipher(&mut self, key: Key) -> Result<()> {
        match self.cipher.replace(key) {
            None => Ok(()),
            first => {
                self.cipher = first;
                Err(Failure::bad_message("a cipher is declared already"))
            }
        }
    }

    fn cipher(&self) -> Result<&Key> {
        self.cipher.as_ref().ok_or_else(|| Failure::bad_message("no cipher is declared to seal or open with"))
    }

    pub fn add_transaction(&mut self, name: String, weight: u64) -> Result<()> {
        if weight == 0 {
            return Err(Failure::bad_message("weight: must be a positive integer"));
        }
        if self.transactions.iter().any(|known| known.name == name) {
            return Err(Failure::bad_message(format!("transaction {name:?} is declared already")));
        }
        self.transactions.push(Transaction { name, weight, statements: Vec::new(), steps: Vec::new() });
        Ok(())
    }

    pub fn add_statement(
        &mut self,
        transaction: &str,
        arm: Option<String>,
        sql: String,
        names: &str,
        open: bool,
    ) -> Result<()> {
        if open {
            self.cipher()?;
        }
        let find = |name: &str| {
            let unknown = || Failure::bad_message(format!("parameters: no variable {name:?} is declared"));
            self.variable(name).ok_or_else(unknown)
        };
        let parameters = names.split_whitespace().map(find).collect::<Result<Vec<_>>>()?;
        if self.turns(&parameters).any(|other| Some(other) != self.turns(&parameters).next()) {
            return Err(Failure::bad_message("parameters: a statement takes one variable of kind \"each\" at most"));
        }
        let transaction = self.transaction(transaction)?;
        let statement = Statement { sql, parameters, open, ..Statement::default() };
        transaction.steps.push((arm.clone(), Step::Run(transaction.statements.len())));
        transaction.statements.push((arm, statement));
        Ok(())
    }

    fn transaction(&mut self, name: &str) -> Result<&mut Transaction> {
        let unknown = || Failure::bad_message(format!("no transaction {name:?} is declared"));
        self.transactions.iter_mut().find(|known| known.name == name).ok_or_else(unknown)
    }

    /// Adds a step that is no statement.
    pub fn add_step(&mut self, transaction: &str, arm: Option<String>, step: Step) -> Result<()> {
        if let Step::Set { variable, .. } = step {
            if !matches!(self.variables[variable].1, Kind::Computed) {
                return Err(Failure::bad_message("variable: a step sets only one of kind \"computed\""));
            }
        }
        self.transaction(transaction)?.steps.push((arm, step));
        Ok(())
    }

    pub fn variable(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|(known, _)| known == name)
    }

    /// Parses an expression over the declared variables.
    pub fn expression(&self, text: &str) -> Result<Expression> {
        Expression::read(text, &|name| self.variable(name))
    }

    /// Lets the statement that was added last to this transaction put its rows into variables.
    pub fn capture(&mut self, transaction: &str, into: IntoVariables) {
        if let Some((_, last)) = self.transaction(transaction).ok().and_then(|found| found.statements.last_mut()) {
            last.into = Some(into);
        }
    }

    /// Lets the statement that was added last to this transaction count only those rows whose opened value is this variable's.
    pub fn keep_rows(&mut self, transaction: &str, variable: &str) -> Result<()> {
        let keep = self.variables.iter().position(|(known, kind)| {
            known == variable
                && !matches!(kind, Kind::Each { .. } | Kind::Sealed { .. } | Kind::Blind { .. } | Kind::Computed)
        });
        let Some(transaction) = self.transactions.iter_mut().find(|known| known.name == transaction) else {
            return Ok(());
        };
        let why = match (keep, transaction.statements.last_mut()) {
            (Some(keep), Some((_, last))) if last.open => {
                last.keep = Some(keep);
                return Ok(());
            }
            (Some(_), _) => "keep: only rows that are opened can be kept by a value".to_string(),
            (None, _) => format!("keep: no variable {variable:?} is declared that is drawn once"),
        };
        transaction.statements.pop();
        transaction.steps.pop();
        Err(Failure::bad_message(why))
    }

    /// Gives the statement that was added last to this transaction what only a request has.
    pub fn complete_request(&mut self, transaction: &str, headers: String, body: Option<String>) {
        let found = self.transactions.iter_mut().find(|known| known.name == transaction);
        if let Some((_, last)) = found.and_then(|transaction| transaction.statements.last_mut()) {
            (last.headers, last.body) = (headers, body);
        }
    }

    /// Those of these variables that have kind `each`.
    fn turns<'a>(&'a self, variables: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        variables.iter().copied().filter(|variable| matches!(self.variables[*variable].1, Kind::Each { .. }))
    }

    /// The loops of a transaction's statements, the first of which has this number in the script.
    fn loops(&self, statements: &[&Statement], first: usize) -> Vec<Loop> {
        let mut found: Vec<(usize, Loop)> = Vec::new();
        for (number, statement) in (first..).zip(statements) {
            let Some(variable) = self.turns(&statement.parameters).next() else { continue };
            let Kind::Each { low, high } = self.variables[variable].1 else { continue };
            match found.last_mut() {
                Some((of, body)) if *of == variable && body.last == number => body.last += 1,
                _ => found.push((variable, Loop { first: number, last: number + 1, low, high })),
            }
        }
        found.into_iter().map(|(_, body)| body).collect()
    }

    /// The steps of an arm's transaction whose first statement has this number in the script.
    fn acts(&self, transaction: &Transaction, arm: &str, first: usize) -> Result<Vec<Act>> {
        let mine = |of: &Option<String>| of.as_deref().is_none_or(|of| of == arm);
        // Statements of the other arm have no number.
        let mut next = first..;
        let numbers: Vec<Option<usize>> =
            transaction.statements.iter().map(|(of, _)| if mine(of) { next.next() } else { None }).collect();
        let steps = transaction.steps.iter().filter(|(of, _)| mine(of)).map(|(_, step)| step.clone());
        compile(steps, |statement| numbers[statement])
    }

    /// Adds the variables that steps read or set, and those that rows may set: each operation begins without a value of the last one.
    fn add_variables_of(&self, acts: &[Act], statements: &[&Statement], variables: &mut Vec<usize>) {
        for act in acts {
            match act {
                Act::Set { variable, to } => {
                    variables.push(*variable);
                    to.variables(&mut |read| variables.push(read));
                }
                Act::Unless(expression, _) | Act::Sleep(expression) => {
                    expression.variables(&mut |read| variables.push(read));
                }
                _ => {}
            }
        }
        for into in statements.iter().filter_map(|statement| statement.into.as_ref()) {
            let named = self.variables.iter().enumerate().filter(|(_, (name, _))| name.starts_with(&into.prefix));
            variables.extend(named.filter(|(_, (_, kind))| *kind == Kind::Computed).map(|(number, _)| number));
        }
    }

    /// The script of one arm: its own statements and those of both arms.
    pub fn script(&mut self, arm: &str) -> Result<Script> {
        if self.transactions.is_empty() {
            return Err(Failure::no_program(format!("program {:?} has no transaction", self.name)));
        }
        let mut script = Script::default();
        let mut weight = 0;
        for transaction in &self.transactions {
            let mine = |of: &Option<String>| of.as_deref().is_none_or(|of| of == arm);
            let statements: Vec<&Statement> =
                transaction.statements.iter().filter(|(of, _)| mine(of)).map(|(_, statement)| statement).collect();
            if statements.is_empty() && !transaction.decides() {
                let text = format!("transaction {:?} has no statement for arm {arm:?}", transaction.name);
                return Err(Failure::no_program(text));
            }
            weight += transaction.weight;
            let first = script.statements.len();
            let acts = if transaction.decides() { self.acts(transaction, arm, first)? } else { Vec::new() };
            let mut variables: Vec<usize> = statements.iter().flat_map(|s| s.parameters.iter().copied()).collect();
            self.add_variables_of(&acts, &statements, &mut variables);
            let mut opening = statements.iter().filter(|statement| statement.open).map(|statement| statement.keep);
            let keep = opening.next().flatten();
            if opening.any(|other| other != keep) {
                let text = format!("transaction {:?} opens rows and keeps them by different values", transaction.name);
                return Err(Failure::no_program(text));
            }
            let made_of = |variable: &usize| match self.variables[*variable].1 {
                Kind::Sealed { of } | Kind::Blind { of, .. } => Some(of),
                _ => None,
            };
            let mut made: Vec<usize> = variables.iter().copied().filter(|at| made_of(at).is_some()).collect();
            made.sort_unstable();
            made.dedup();
            let sealed = made.iter().filter(|at| matches!(self.variables[**at].1, Kind::Sealed { .. })).count() as u64;
            // What another value is made of must be drawn, whether or not a statement also uses its text.
            variables.retain(|variable| made_of(variable).is_none());
            variables.extend(made.iter().filter_map(made_of));
            variables.extend(keep);
            variables.sort_unstable();
            variables.dedup();
            if !acts.is_empty() && self.turns(&variables).next().is_some() {
                return Err(Failure::no_program("a transaction with steps has no variable of kind \"each\""));
            }
            script.loops.extend(self.loops(&statements, first));
            script.statements.extend(statements.into_iter().cloned());
            let last = script.statements.len();
            script.transactions.push(Drawn { up_to: weight, first, last, variables, made, sealed, keep, acts });
        }
        script.weight = weight;
        script.cipher.clone_from(&self.cipher);
        (script.mode, script.tries, script.draw) = (self.mode, self.tries, self.draw);
        script.names = self.variables.iter().map(|(name, _)| name.clone()).collect();
        script.kinds = self.variables.iter().map(|(_, kind)| kind.clone()).collect();
        let fresh = || Arc::new(self.variables.iter().map(|_| AtomicI64::new(0)).collect());
        script.counters = self.counters.entry(arm.to_string()).or_insert_with(fresh).clone();
        Ok(script)
    }
}

#[cfg(test)]
mod tests;
