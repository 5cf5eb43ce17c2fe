//! The interface of a database protocol: statements on a connection.

use super::link::Link;
use super::wire::Wire;
use crate::connection::{Outcome, Rows};
use crate::failure::Result;
use crate::message;
use crate::program::{Operation, Script};
use crate::query_mode::QueryMode;

/// A database server's statements.
pub trait Protocol: Wire<Asked = message::Server> + Default {
    /// How statements can travel.
    const MODES: &'static [QueryMode] = &[QueryMode::Prepared];
    /// Whether several statements can be sent before the first one's results are awaited.
    const PIPELINES: bool = false;
    /// Its name in messages.
    const NAME: &'static str;

    /// Refuses a script that could run on no connection: the only preparation if nothing is prepared.
    fn check(&self, script: &Script) -> Result<()>;
    /// Prepares every statement, replacing those that were prepared before.
    fn prepare(&mut self, link: &mut Link<Self>, script: &Script) -> Result<()>;
    /// Appends one run of a prepared statement to the outbox.
    fn run(&mut self, link: &mut Link<Self>, script: &Script, number: usize, operation: &Operation);
    /// The same for a statement that was not prepared.
    fn run_unprepared(&mut self, link: &mut Link<Self>, script: &Script, number: usize, operation: &Operation);
    /// The same with its values in the text, if the server distinguishes this.
    fn run_simple(&mut self, link: &mut Link<Self>, script: &Script, number: usize, operation: &Operation) {
        self.run_unprepared(link, script, number, operation);
    }
    /// Takes from the outbox the request for the results of the statement that was appended last. Only for `PIPELINES`.
    fn continue_pipeline(&mut self, _link: &mut Link<Self>) {}
    /// Appends the request for the results of a pipeline.
    fn sync(&mut self, _link: &mut Link<Self>) {}
    /// Appends one statement without values to the outbox.
    fn say(&mut self, link: &mut Link<Self>, sql: &str);
    /// Takes received bytes, and the values of rows that go into variables. None: the statement continues.
    fn hear(
        &mut self,
        link: &mut Link<Self>,
        script: &Script,
        operation: &mut Operation,
        outcome: &mut Outcome,
    ) -> Result<Option<Ready>>;
    /// Splits a text into its statements at `;`. The connection is open.
    fn statements<'a>(link: &Link<Self>, sql: &'a str) -> Vec<&'a str>;
    /// Runs statements separated by `;` and returns the last result.
    fn query(&mut self, link: &mut Link<Self>, sql: &str) -> Result<Rows>;
}

/// The server is ready for the next statement.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ready {
    /// After an error: a transaction is open, or may be.
    pub to_roll_back: bool,
}
