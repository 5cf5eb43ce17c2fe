//! protocol: what a database server's driver does with statements on a connection.

use super::link::Link;
use super::wire::Wire;
use crate::connection::{Outcome, Rows};
use crate::failure::Result;
use crate::message;
use crate::program::{Operation, Script};

/// A database server's statements.
pub trait Protocol: Wire<Asked = message::Server> + Default {
    /// Refuses a script that could run on no connection: all that there is to prepare where every operation has its own.
    fn check(&self, script: &Script) -> Result<()>;
    /// Prepares every statement, in place of those that were prepared before.
    fn prepare(&mut self, link: &mut Link<Self>, script: &Script) -> Result<()>;
    /// Puts one run of a prepared statement into the outbox.
    fn run(&mut self, link: &mut Link<Self>, script: &Script, number: usize, operation: &Operation);
    /// The same for a statement that was not prepared.
    fn run_unprepared(&mut self, link: &mut Link<Self>, script: &Script, number: usize, operation: &Operation);
    /// Puts one statement without values into the outbox.
    fn say(&mut self, link: &mut Link<Self>, sql: &str);
    /// Takes what has come. None: the statement goes on.
    fn hear(&mut self, link: &mut Link<Self>, outcome: &mut Outcome) -> Result<Option<Ready>>;
    /// The statements of a text that are separated by `;`. The connection is open.
    fn statements<'a>(link: &Link<Self>, sql: &'a str) -> Vec<&'a str>;
    /// Runs statements separated by `;` and gives the last result.
    fn query(&mut self, link: &mut Link<Self>, sql: &str) -> Result<Rows>;
}

/// The server is ready for the next statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ready {
    /// After an error: a transaction is open, or may be.
    pub to_roll_back: bool,
}
