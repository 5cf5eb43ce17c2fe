//! login: what the server asks for -> what a client answers, until it is let in.

use super::inbox::{Fields, error_of};
use crate::failure::{Failure, Result};
use crate::message::Postgres;
use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

/// One login in progress.
#[derive(Default)]
pub struct Login {
    scram: Option<ScramSha256>,
    pub server_version: String,
}

/// What to do after a message.
pub enum Turn {
    Wait,
    Send(BytesMut),
    Ready,
}

/// Asks for TLS.
pub fn ssl_request() -> BytesMut {
    let mut bytes = BytesMut::new();
    frontend::ssl_request(&mut bytes);
    bytes
}

pub fn startup(asked: &Postgres) -> Result<BytesMut> {
    let mut bytes = BytesMut::new();
    let mut parameters = vec![
        ("user", asked.user.as_str()),
        ("database", &asked.database),
        ("client_encoding", "UTF8"),
        ("application_name", "ciphercost-agent"),
    ];
    parameters.extend(asked.search_path.as_deref().map(|path| ("search_path", path)));
    frontend::startup_message(parameters, &mut bytes).map_err(internal)?;
    Ok(bytes)
}

impl Login {
    pub fn hear(&mut self, tag: u8, body: &[u8], asked: &Postgres) -> Result<Turn> {
        match tag {
            b'R' => self.authenticate(body, asked),
            b'S' => {
                let mut fields = Fields(body);
                if fields.string() == "server_version" {
                    self.server_version = fields.string();
                }
                Ok(Turn::Wait)
            }
            b'E' => Err(error_of(body).lost()),
            b'Z' => Ok(Turn::Ready),
            _ => Ok(Turn::Wait),
        }
    }

    fn authenticate(&mut self, body: &[u8], asked: &Postgres) -> Result<Turn> {
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
            3 => frontend::password_message(secret()?.as_bytes(), &mut answer).map_err(internal)?,
            5 => {
                let salt = fields.bytes(4).try_into().map_err(|_| Failure::connect("a salt of the wrong length"))?;
                let hash = md5_hash(asked.user.as_bytes(), secret()?.as_bytes(), salt);
                frontend::password_message(hash.as_bytes(), &mut answer).map_err(internal)?;
            }
            10 => {
                // No channel binding, not even over TLS: both arms do the same work.
                let scram = ScramSha256::new(secret()?.as_bytes(), ChannelBinding::unsupported());
                frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut answer).map_err(internal)?;
                self.scram = Some(scram);
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
        Ok(Turn::Send(answer))
    }
}

fn scram_failed(error: std::io::Error) -> Failure {
    Failure::connect(format!("SCRAM authentication failed: {error}"))
}

fn internal(error: std::io::Error) -> Failure {
    Failure::connect(format!("cannot be sent to a server: {error}"))
}
