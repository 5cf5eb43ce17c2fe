//! `HELLO 2`, with a password if there is one.

use super::Resp;
use super::inbox::Inbox;
use crate::drivers::key_value::login::{auth, password};
use crate::drivers::key_value::put_fixed;
use crate::drivers::key_value::replies::{Part, Replies};
use crate::drivers::network::wire::{self, Turn};
use crate::failure::{Failure, Result};
use crate::message::Server;

/// One login in progress.
#[derive(Default)]
pub struct Login {
    /// The last name in the server's reply, whose value follows.
    name: String,
    server_version: String,
    password: bool,
}

impl wire::Login<Inbox> for Login {
    fn first(&mut self, asked: &Server) -> Result<Vec<u8>> {
        let mut hello = vec![b"HELLO".to_vec(), b"2".to_vec()];
        if let Some(password) = password(asked)? {
            self.password = true;
            hello.extend([b"AUTH".to_vec(), asked.user.clone().into_bytes(), password.into()]);
        }
        let mut bytes = Vec::new();
        put_fixed::<Resp>(hello, &mut bytes);
        Ok(bytes)
    }

    /// An array of names and values: `server`, `valkey`, `version`, `8.1.1`, …
    fn hear(&mut self, inbox: &mut Inbox, _: &Server) -> Result<Turn> {
        while let Some((part, last)) = inbox.next(false)? {
            match part {
                Part::Error(text) => return Err(error_of(text).lost()),
                Part::Value(text) => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    if self.name == "version" && self.server_version.is_empty() {
                        self.server_version.clone_from(&text);
                    }
                    self.name = text;
                }
                _ => self.name.clear(),
            }
            if last {
                return Ok(Turn::Ready);
            }
        }
        Ok(Turn::Wait)
    }

    fn server_version(&self) -> String {
        self.server_version.clone()
    }

    fn auth(&self) -> String {
        auth(self.password)
    }
}

/// An error reply: its first word is its code.
pub fn error_of(text: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(text);
    let (code, words) = text.split_once(' ').unwrap_or(("", &text));
    let coded = !code.is_empty() && code.bytes().all(|letter| letter.is_ascii_uppercase());
    if coded { Failure::new(code, words) } else { Failure::statement(text.as_ref()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_code_in_front() {
        let failure = error_of(b"WRONGPASS invalid password");
        assert_eq!((failure.code.as_str(), failure.text.as_str()), ("WRONGPASS", "invalid password"));
        assert_eq!(error_of(b"nothing").code, "statement");
    }
}
