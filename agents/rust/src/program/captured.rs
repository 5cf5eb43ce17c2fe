//! Puts the values of a statement's rows into variables.

use super::operation::Operation;
use super::script::{Script, Statement};
use crate::failure::{Failure, Result};

/// The rows of a running statement whose values go into variables.
#[derive(Debug, Default, Clone)]
pub struct Captured {
    /// The variable of each column, if there is one.
    targets: Vec<Option<usize>>,
    rows: u64,
}

impl Captured {
    /// A result with other columns begins.
    pub fn forget_columns(&mut self) {
        self.targets.clear();
    }

    /// The next column has this name.
    pub fn column(&mut self, script: &Script, statement: &Statement, name: &str) {
        self.targets.push(statement.into.as_ref().and_then(|into| script.variable_for(&into.prefix, name)));
    }

    /// The statement runs again.
    pub fn begin(&mut self) {
        self.rows = 0;
    }

    /// A row has come.
    pub fn row(&mut self) {
        self.rows += 1;
    }

    /// The value of a row's column; None: NULL.
    pub fn value(&self, operation: &mut Operation, column: usize, value: Option<&[u8]>) {
        if let Some(Some(variable)) = self.targets.get(column) {
            operation.set_text(*variable, value);
        }
    }

    /// The statement has ended: an error unless it returned as many rows as it must.
    pub fn end(&self, statement: &Statement) -> Result<()> {
        match &statement.into {
            Some(into) if !into.every && self.rows != 1 => {
                Err(Failure::statement(format!("\\gset: expected one row, got {}", self.rows)))
            }
            _ => Ok(()),
        }
    }
}
