//! The protocol of Valkey and Redis (RESP2).

pub mod command;
mod inbox;
mod login;
#[cfg(test)]
mod tests;

use super::key_value::Dialect;
use super::key_value::command::Command;
use crate::failure::Failure;
use crate::program::Operation;

#[derive(Default)]
pub struct Resp;

impl Dialect for Resp {
    type Inbox = inbox::Inbox;
    type Login = login::Login;
    const GOODBYE: &'static [u8] = b"*1\r\n$4\r\nQUIT\r\n";

    #[inline]
    fn put(command: &Command, operation: &Operation, into: &mut Vec<u8>) {
        command::put(command, operation, into);
    }

    fn error_of(text: &[u8]) -> Failure {
        login::error_of(text)
    }
}
