//! What SQLite and its relatives have in common of preparing statements and reading an answer.

use super::cells::{Row, add_row};
use crate::connection::{QUERY_LIMIT_BYTES, Rows};
use crate::failure::{Failure, Result};
use crate::program::Script;

/// A prepared statement.
pub trait Statement: Row {
    /// How the library numbers parameters.
    type Index;

    /// How many parameters it has.
    fn parameters(&self) -> usize;
    /// The library's index of parameter `$number`; None: there is no such parameter.
    fn parameter(&self, number: usize) -> Option<Self::Index>;
    /// How many columns its rows have.
    fn columns(&self) -> usize;
    fn column_name(&self, column: usize) -> String;
}

/// Runs a text of statements, and returns the rows of the last one that has any. `prepare` takes the first statement of a text and
/// returns the rest; `step` says whether there is a row.
pub fn run<S: Statement>(
    sql: &str,
    prepare: impl for<'s> Fn(&'s str) -> Result<(Option<S>, &'s str)>,
    step: impl Fn(&mut S) -> Result<bool>,
) -> Result<Rows> {
    let (mut rest, mut answer) = (sql, Rows::default());
    while !rest.trim().is_empty() {
        let (prepared, tail) = prepare(rest)?;
        rest = tail;
        let Some(mut statement) = prepared else { continue };
        let columns = statement.columns();
        if columns > 0 {
            let names: Vec<String> = (0..columns).map(|column| statement.column_name(column)).collect();
            answer = Rows { columns: names.join("\t"), ..Rows::default() };
        }
        while step(&mut statement)? {
            add_row(&statement, columns, &mut answer);
            if answer.text.len() > QUERY_LIMIT_BYTES {
                return Err(Failure::statement("the answer is longer than 16 MiB"));
            }
        }
    }
    Ok(answer)
}

/// A script's statements, each with the indices of its parameters.
pub fn of_script<S: Statement>(
    script: &Script,
    prepare: impl for<'s> Fn(&'s str) -> Result<(Option<S>, &'s str)>,
) -> Result<Vec<(S, Vec<S::Index>)>> {
    let one = |statement: &crate::program::Statement| {
        let (prepared, rest) = prepare(&statement.sql)?;
        if !rest.trim_matches([' ', '\n', '\t', ';']).is_empty() {
            return Err(Failure::statement("a program's statement must be one statement"));
        }
        let prepared = prepared.ok_or_else(|| Failure::statement("a program's statement is empty"))?;
        let (has, given) = (prepared.parameters(), statement.parameters.len());
        if has != given {
            return Err(Failure::statement(format!("{}: has {has} parameters, {given} given", statement.sql)));
        }
        let missing = |number| Failure::statement(format!("{}: has no parameter ${number}", statement.sql));
        let index = |number| prepared.parameter(number).ok_or_else(|| missing(number));
        let indices = (1..=given).map(index).collect::<Result<_>>()?;
        Ok((prepared, indices))
    };
    script.statements.iter().map(one).collect()
}
