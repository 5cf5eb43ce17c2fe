//! With a password, the first `set` of a connection carries user and password; then `version`.

use super::command;
use super::inbox::{Inbox, Part, error_of};
use crate::drivers::network::wire::{self, Turn};
use crate::drivers::resp::command::Command;
use crate::failure::{Failure, Result};
use crate::message::Server;
use crate::program::Operation;

/// One login in progress.
#[derive(Default)]
pub struct Login {
    server_version: String,
    password: bool,
}

/// There is no greeting: TLS has its own port and begins at once.
impl wire::Login<Inbox> for Login {
    fn first(&mut self, asked: &Server) -> Result<Vec<u8>> {
        let Some(password) = asked.password.as_deref() else { return Ok(line(&["version"])) };
        if asked.exposed() {
            let text = "refused to send the password over an unencrypted connection; use TLS or a loopback address";
            return Err(Failure::connect(text));
        }
        self.password = true;
        Ok(line(&["set", "login", &format!("{} {password}", asked.user)]))
    }

    /// `STORED` means that the password is right; `VERSION 1.6.38` ends the login.
    fn hear(&mut self, inbox: &mut Inbox, _: &Server) -> Result<Turn> {
        let Some((part, _)) = inbox.next()? else { return Ok(Turn::Wait) };
        match part {
            Part::Error(text) => Err(error_of(text).lost()),
            Part::Value(b"STORED") => Ok(Turn::Send(line(&["version"]))),
            Part::Value(text) if text.starts_with(b"VERSION ") => {
                self.server_version = String::from_utf8_lossy(&text[b"VERSION ".len()..]).into();
                Ok(Turn::Ready)
            }
            _ => Err(Failure::connect("the server answered the login with something other than its version")),
        }
    }

    fn server_version(&self) -> String {
        self.server_version.clone()
    }

    fn auth(&self) -> String {
        if self.password { "password" } else { "none" }.into()
    }
}

fn line(words: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    command::put(&Command::fixed(words), &Operation::default(), &mut bytes);
    bytes
}
