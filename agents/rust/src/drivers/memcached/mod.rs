//! memcached's text protocol.

pub mod command;
mod inbox;
mod login;

use super::key_value::Dialect;
use super::key_value::command::Command;
use crate::failure::Failure;
use crate::program::Operation;

#[derive(Default)]
pub struct Memcached;

impl Dialect for Memcached {
    type Inbox = inbox::Inbox;
    type Login = login::Login;
    const GOODBYE: &'static [u8] = b"quit\r\n";

    #[inline]
    fn put(command: &Command, operation: &Operation, into: &mut Vec<u8>) {
        command::put(command, operation, into);
    }

    fn error_of(text: &[u8]) -> Failure {
        inbox::error_of(text)
    }
}
