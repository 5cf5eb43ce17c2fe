//! Builds a program from messages: variables, transactions and their statements.

use super::script::{Drawn, Loop, Script, Statement};
use crate::draw::Kind;
use crate::envelope::Key;
use crate::failure::{Failure, Result};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

#[derive(Debug, Default)]
pub struct Program {
    pub name: String,
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
}

impl Program {
    pub fn new(name: String) -> Program {
        Program { name, ..Program::default() }
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

    /// Declares a variable that is the sealed value of another one.
    pub fn add_sealed(&mut self, name: String, of: &str) -> Result<()> {
        self.cipher()?;
        match self.variables.iter().position(|(known, _)| known == of) {
            Some(at) if matches!(self.variables[at].1, Kind::Sealed { .. }) => {
                Err(Failure::bad_message(format!("of: variable {of:?} is sealed itself")))
            }
            Some(at) if matches!(self.variables[at].1, Kind::Each { .. }) => {
                Err(Failure::bad_message(format!("of: variable {of:?} is of kind \"each\", which can't be sealed")))
            }
            Some(at) => self.add_variable(name, Kind::Sealed { of: at }),
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
        self.transactions.push(Transaction { name, weight, statements: Vec::new() });
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
            let position = self.variables.iter().position(|(known, _)| known == name);
            position.ok_or_else(|| Failure::bad_message(format!("parameters: no variable {name:?} is declared")))
        };
        let parameters = names.split_whitespace().map(find).collect::<Result<Vec<_>>>()?;
        if self.turns(&parameters).any(|other| Some(other) != self.turns(&parameters).next()) {
            return Err(Failure::bad_message("parameters: a statement takes one variable of kind \"each\" at most"));
        }
        let unknown = || Failure::bad_message(format!("no transaction {transaction:?} is declared"));
        let transaction = self.transactions.iter_mut().find(|known| known.name == transaction).ok_or_else(unknown)?;
        let statement = Statement { sql, parameters, open, ..Statement::default() };
        transaction.statements.push((arm, statement));
        Ok(())
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
            if statements.is_empty() {
                let text = format!("transaction {:?} has no statement for arm {arm:?}", transaction.name);
                return Err(Failure::no_program(text));
            }
            weight += transaction.weight;
            let mut variables: Vec<usize> = statements.iter().flat_map(|s| s.parameters.iter().copied()).collect();
            let sealed_of = |variable: &usize| match self.variables[*variable].1 {
                Kind::Sealed { of } => Some((*variable, of)),
                _ => None,
            };
            let mut sealed: Vec<(usize, usize)> = variables.iter().filter_map(sealed_of).collect();
            sealed.sort_unstable();
            sealed.dedup();
            // A sealed value must be drawn, whether or not a statement also uses its text.
            variables.retain(|variable| sealed_of(variable).is_none());
            variables.extend(sealed.iter().map(|(_, of)| *of));
            variables.sort_unstable();
            variables.dedup();
            let first = script.statements.len();
            script.loops.extend(self.loops(&statements, first));
            script.statements.extend(statements.into_iter().cloned());
            script.transactions.push(Drawn { up_to: weight, first, last: script.statements.len(), variables, sealed });
        }
        script.weight = weight;
        script.cipher.clone_from(&self.cipher);
        script.kinds = self.variables.iter().map(|(_, kind)| kind.clone()).collect();
        let fresh = || Arc::new(self.variables.iter().map(|_| AtomicI64::new(0)).collect());
        script.counters = self.counters.entry(arm.to_string()).or_insert_with(fresh).clone();
        Ok(script)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope;
    use crate::program::{Operation, Parameter};

    fn program() -> Program {
        let mut program = Program::new("mixed".into());
        program.add_variable("a".into(), Kind::Uniform { low: 1, high: 9 }).unwrap();
        program.add_variable("n".into(), Kind::Sequence { low: 1 }).unwrap();
        program.add_transaction("read".into(), 3).unwrap();
        program.add_transaction("write".into(), 1).unwrap();
        program.add_statement("read", None, "SELECT $1".into(), "a", false).unwrap();
        program.add_statement("write", Some("plain".into()), "INSERT $1, $2".into(), "n a", false).unwrap();
        program.add_statement("write", Some("encrypted".into()), "INSERT e($1)".into(), "n", false).unwrap();
        program
    }

    #[test]
    fn transactions_are_drawn_by_weight() {
        let script = program().script("plain").unwrap();
        let mut operation = Operation::default();
        let reads = (0..10_000).filter(|number| {
            script.draw(1, *number, &mut operation);
            operation.first == 0
        });
        let reads = reads.count();
        assert!((7_300..7_700).contains(&reads), "{reads}");
    }

    #[test]
    fn an_arm_runs_its_own_statements_only() {
        let mut program = program();
        let sql = |script: Script| script.statements.into_iter().map(|s| s.sql).collect::<Vec<_>>();
        assert_eq!(sql(program.script("plain").unwrap()), ["SELECT $1", "INSERT $1, $2"]);
        assert_eq!(sql(program.script("encrypted").unwrap()), ["SELECT $1", "INSERT e($1)"]);
        assert_eq!(program.script("loader").unwrap_err().code, "no-program");
    }

    #[test]
    fn a_sequence_continues_across_slices_and_each_arm_has_its_own() {
        let mut program = Program::new("p".into());
        program.add_variable("n".into(), Kind::Sequence { low: 5 }).unwrap();
        program.add_transaction("t".into(), 1).unwrap();
        program.add_statement("t", None, "$1".into(), "n", false).unwrap();
        let mut draw = |arm: &str| {
            let mut operation = Operation::default();
            program.script(arm).unwrap().draw(0, 0, &mut operation);
            match operation.parameter(0) {
                Parameter::Integer(value) => value,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([draw("plain"), draw("plain"), draw("encrypted"), draw("plain")], [5, 6, 5, 7]);
    }

    #[test]
    fn statements_that_take_each_value_run_once_for_each_of_them() {
        let mut program = Program::new("p".into());
        program.add_variable("id".into(), Kind::Each { low: 1, high: 3 }).unwrap();
        program.add_variable("again".into(), Kind::Each { low: 7, high: 8 }).unwrap();
        program.add_variable("x".into(), Kind::Uniform { low: 5, high: 5 }).unwrap();
        program.add_transaction("t".into(), 1).unwrap();
        for (sql, names) in [("a", ""), ("b", "id"), ("c", "x id"), ("d", "again"), ("e", "x"), ("f", "id")] {
            program.add_statement("t", None, sql.into(), names, false).unwrap();
        }
        let refused = program.add_statement("t", None, "g".into(), "id again", false).unwrap_err();
        assert_eq!(refused.code, "bad-message");
        let script = program.script("plain").unwrap();
        let mut operation = Operation::default();
        for _ in 0..2 {
            script.draw(1, 0, &mut operation);
            let (mut ran, mut at) = (Vec::new(), operation.first);
            while at < operation.last {
                let statement = &script.statements[at];
                let values = statement.parameters.iter().map(|variable| match operation.parameter(*variable) {
                    Parameter::Integer(value) => value,
                    other => panic!("{other:?}"),
                });
                ran.push(format!("{}{:?}", statement.sql, values.collect::<Vec<_>>()));
                at = script.after(&operation, at);
            }
            let wanted = "a[] b[1] c[5, 1] b[2] c[5, 2] b[3] c[5, 3] d[7] d[8] e[5] f[1] f[2] f[3]";
            assert_eq!(ran.join(" "), wanted);
        }
    }

    #[test]
    fn a_statement_names_what_is_declared() {
        let mut program = program();
        assert_eq!(program.add_statement("read", None, "x".into(), "zzz", false).unwrap_err().code, "bad-message");
        assert_eq!(program.add_statement("zzz", None, "x".into(), "a", false).unwrap_err().code, "bad-message");
    }

    #[test]
    fn what_is_sealed_is_drawn_and_sealed_anew_for_each_operation() {
        let mut program = Program::new("p".into());
        program.add_variable("n".into(), Kind::Sequence { low: 41 }).unwrap();
        assert_eq!(program.add_sealed("s".into(), "n").unwrap_err().code, "bad-message", "without a cipher");
        assert!(program.add_transaction("t".into(), 1).is_ok());
        assert!(program.add_statement("t", None, "SELECT 1".into(), "", true).is_err(), "without a cipher");
        let key = Key::read("aes256-gcm", &"5a".repeat(32)).unwrap();
        program.set_cipher(key.clone()).unwrap();
        assert!(program.set_cipher(key.clone()).is_err(), "twice");
        program.add_variable("text".into(), Kind::Text { length: 20 }).unwrap();
        program.add_sealed("s".into(), "n").unwrap();
        program.add_sealed("st".into(), "text").unwrap();
        assert!(program.add_sealed("ss".into(), "s").is_err(), "sealed twice");
        program.add_statement("t", Some("encrypted".into()), "$1, $2".into(), "s st", false).unwrap();
        program.add_statement("t", Some("plain".into()), "$1, $2".into(), "n text", false).unwrap();
        let mut draw = |arm: &str| {
            let (script, mut operation) = (program.script(arm).unwrap(), Operation::default());
            envelope::enter(script.cipher.as_ref()).unwrap();
            script.draw(0, 0, &mut operation);
            let values = script.statements[0].parameters.iter().map(|at| match operation.parameter(*at) {
                Parameter::Integer(value) => value.to_string().into_bytes(),
                Parameter::Text(value) | Parameter::Bytes(value) => value.to_vec(),
            });
            (operation.sealed, values.collect::<Vec<_>>())
        };
        let (none, clear) = draw("plain");
        let ((two, first), (_, second)) = (draw("encrypted"), draw("encrypted"));
        assert_eq!((none, two), (0, 2));
        assert!(first[1] != second[1] && first[1][2..14] != second[1][2..14]);
        envelope::with(|vault, row| {
            vault.put(&first[0], row).unwrap();
            vault.put(&second[0], row).unwrap();
            assert_eq!(row, b"4142", "both arms draw the same, and a sequence goes on");
            row.clear();
            vault.put(&first[1], row).unwrap();
            assert_eq!(*row, clear[1]);
        });
    }
}
