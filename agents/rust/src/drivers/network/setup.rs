//! The statements that run on each connection after its login and before anything else.

use super::link::Link;
use super::protocol::Protocol;
use std::sync::OnceLock;

/// The text, and its statements once the first connection is open: how to split it may depend on the server's settings.
#[derive(Default)]
pub struct Setup {
    text: String,
    statements: OnceLock<Vec<String>>,
}

impl Setup {
    pub fn new(text: Option<&String>) -> Setup {
        Setup { text: text.cloned().unwrap_or_default(), statements: OnceLock::new() }
    }

    /// The statements, for a connection that is open.
    #[inline]
    pub fn statements<P: Protocol>(&self, link: &Link<P>) -> &[String] {
        self.statements.get_or_init(|| P::statements(link, &self.text).into_iter().map(str::to_string).collect())
    }
}
