//! login: what the server asks for -> what a client answers, until it is let in.

use super::inbox::{Fields, Inbox, Message, error_of};
use crate::drivers::Step;
use crate::drivers::network::{self, Turn};
use crate::failure::{Failure, Result};
use crate::message::{Server, Tls};
use crate::transport::socket::Socket;
use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;
use std::io;

/// One login in progress.
#[derive(Default)]
pub struct Login {
    tls_asked: bool,
    scram: Option<ScramSha256>,
    method: &'static str,
    server_version: String,
}

impl network::Login<Inbox> for Login {
    /// Asks for TLS; the server answers with one byte.
    fn greet(&mut self, socket: &Socket, asked: &Server) -> Result<Step> {
        if asked.tls == Tls::Off {
            return Ok(Step::Done);
        }
        if !self.tls_asked {
            let mut request = BytesMut::new();
            frontend::ssl_request(&mut request);
            socket.send_all(&request)?;
            self.tls_asked = true;
        }
        // One byte and no more: whatever follows in clear would be someone else's.
        let mut answer = [0];
        match socket.receive(&mut answer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Step::Pending),
            Err(error) => Err(error.into()),
            Ok(1) if answer == *b"S" => Ok(Step::Done),
            Ok(_) => Err(Failure::tls("the server does not offer TLS")),
        }
    }

    fn first(&mut self, asked: &Server) -> Result<Vec<u8>> {
        let mut bytes = BytesMut::new();
        let mut parameters = vec![
            ("user", asked.user.as_str()),
            ("database", asked.database.as_deref().unwrap_or_default()),
            ("client_encoding", "UTF8"),
            ("application_name", "ciphercost-agent"),
        ];
        parameters.extend(asked.search_path.as_deref().map(|path| ("search_path", path)));
        frontend::startup_message(parameters, &mut bytes).map_err(internal)?;
        Ok(bytes.to_vec())
    }

    fn hear(&mut self, inbox: &mut Inbox, asked: &Server) -> Result<Turn> {
        while let Some(message) = inbox.next(false)? {
            let Message::Other { tag, body } = message else { continue };
            match tag {
                b'R' => match self.authenticate(body, asked)? {
                    Turn::Wait => {}
                    turn => return Ok(turn),
                },
                b'S' => {
                    let mut fields = Fields(body);
                    if fields.string() == "server_version" {
                        self.server_version = fields.string();
                    }
                }
                b'E' => return Err(error_of(body).lost()),
                b'Z' => return Ok(Turn::Ready),
                _ => {}
            }
        }
        Ok(Turn::Wait)
    }

    /// "15.18 (Debian …)": the packager's name is no part of the version.
    fn server_version(&self) -> String {
        self.server_version.split(' ').next().unwrap_or_default().into()
    }

    fn auth(&self) -> String {
        if self.method.is_empty() { "trust" } else { self.method }.into()
    }
}

impl Login {
    fn authenticate(&mut self, body: &[u8], asked: &Server) -> Result<Turn> {
        let mut fields = Fields(body);
        let password = asked.password.as_deref();
        let secret = || password.ok_or_else(|| Failure::connect("the server asks for a password and none was given"));
        let mut answer = BytesMut::new();
        match fields.i32() {
            0 => return Ok(Turn::Wait),
            3 if asked.exposed() => {
                let text =
                    "the server asks for the password in clear, over a connection in clear: refused. Use scram-sha-256";
                return Err(Failure::connect(text));
            }
            3 => {
                self.method = "password";
                frontend::password_message(secret()?.as_bytes(), &mut answer).map_err(internal)?;
            }
            5 => {
                self.method = "md5";
                let salt = fields.bytes(4).try_into().map_err(|_| Failure::connect("a salt of the wrong length"))?;
                let hash = md5_hash(asked.user.as_bytes(), secret()?.as_bytes(), salt);
                frontend::password_message(hash.as_bytes(), &mut answer).map_err(internal)?;
            }
            10 => {
                // No channel binding, not even over TLS: both arms do the same work.
                let scram = ScramSha256::new(secret()?.as_bytes(), ChannelBinding::unsupported());
                frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut answer).map_err(internal)?;
                self.scram = Some(scram);
                self.method = "scram-sha-256";
            }
            11 => {
                let scram = self.scram.as_mut().ok_or_else(|| Failure::connect("SCRAM out of order"))?;
                scram.update(fields.0).map_err(scram_failed)?;
                frontend::sasl_response(scram.message(), &mut answer).map_err(internal)?;
            }
            12 => {
                let scram = self.scram.as_mut().ok_or_else(|| Failure::connect("SCRAM out of order"))?;
                scram.finish(fields.0).map_err(scram_failed)?;
                return Ok(Turn::Wait);
            }
            other => {
                let known = "only trust, password, md5 and scram-sha-256 are known";
                return Err(Failure::connect(format!("the server asks for authentication method {other}; {known}")));
            }
        }
        Ok(Turn::Send(answer.to_vec()))
    }
}

fn scram_failed(error: std::io::Error) -> Failure {
    Failure::connect(format!("SCRAM authentication failed: {error}"))
}

fn internal(error: std::io::Error) -> Failure {
    Failure::connect(format!("cannot be sent to a server: {error}"))
}
