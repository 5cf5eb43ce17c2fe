//! With a password, the first `set` of a connection carries user and password; then `version`.

use super::Memcached;
use super::inbox::{Inbox, error_of};
use crate::drivers::key_value::login::{auth, password};
use crate::drivers::key_value::put_fixed;
use crate::drivers::key_value::replies::{Part, Replies};
use crate::drivers::network::wire::{self, Turn};
use crate::failure::{Failure, Result};
use crate::message::Server;

/// One login in progress.
#[derive(Default)]
pub struct Login {
    server_version: String,
    password: bool,
}

impl wire::Login<Inbox> for Login {
    fn first(&mut self, asked: &Server) -> Result<Vec<u8>> {
        let Some(password) = password(asked)? else { return Ok(line(&["version"])) };
        self.password = true;
        Ok(line(&["set", "login", &format!("{} {password}", asked.user)]))
    }

    /// `STORED` means that the password is right; `VERSION 1.6.38` ends the login.
    fn hear(&mut self, inbox: &mut Inbox, _: &Server) -> Result<Turn> {
        let Some((part, _)) = inbox.next(false)? else { return Ok(Turn::Wait) };
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
        auth(self.password)
    }
}

fn line(words: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_fixed::<Memcached>(words.iter().map(|word| word.as_bytes().to_vec()).collect(), &mut bytes);
    bytes
}
