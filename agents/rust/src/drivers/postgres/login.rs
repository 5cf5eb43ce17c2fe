//! The client's side of the login.

use super::inbox::{Fields, Inbox, Message, error_of};
use crate::connection::Step;
use crate::drivers::network::wire::{self, Turn};
use crate::failure::{Failure, Result};
use crate::message::{ChannelBinding as Binding, Server, Tls};
use crate::transport::binding;
use crate::transport::socket::Socket;
use bytes::BytesMut;
use openssl::ssl::SslRef;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};
use postgres_protocol::message::frontend;
use std::io;

/// PostgreSQL's own default since SCRAM came. With fewer, whoever poses as the server tries passwords that much faster on our proof.
const FEWEST_ITERATIONS: u32 = 4096;
/// 2^10 times as many: more would only keep the client busy.
const MOST_ITERATIONS: u32 = FEWEST_ITERATIONS << 10;

/// How a login that is bound to the TLS connection is named.
const BOUND: &str = "scram-sha-256-plus";
const UNBOUND: &str = "channel_binding is require, but the server asks for a login that is not bound to the TLS connection: refused. \
                       Let this user log in with scram-sha-256 over TLS";

/// One login in progress.
#[derive(Default)]
pub struct Login {
    tls_asked: bool,
    scram: Option<ScramSha256>,
    /// The certificate's hash, to which SCRAM can be bound.
    end_point: Option<Vec<u8>>,
    /// Whether it had to be bound to it, and is.
    insists: bool,
    method: &'static str,
    server_version: String,
    /// A backslash begins an escape in every string: `standard_conforming_strings` is off.
    pub backslash_escapes: bool,
}

impl wire::Login<Inbox> for Login {
    /// Requests TLS, unless it begins at once; the server answers with one byte.
    fn greet(&mut self, socket: &Socket, asked: &Server) -> Result<Step> {
        if asked.tls == Tls::Off || asked.tls_at_once {
            return Ok(Step::Done);
        }
        if !self.tls_asked {
            let mut request = BytesMut::new();
            frontend::ssl_request(&mut request);
            socket.send_all(&request)?;
            self.tls_asked = true;
        }
        // Exactly one byte: unencrypted bytes after it could come from someone else.
        let mut answer = [0];
        match socket.receive(&mut answer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Step::Pending),
            Err(error) => Err(error.into()),
            Ok(1) if answer == *b"S" => Ok(Step::Done),
            Ok(_) => Err(Failure::tls("the server does not offer TLS")),
        }
    }

    fn protected_by(&mut self, session: &SslRef, asked: &Server) {
        if asked.channel_binding != Binding::Disable {
            self.end_point = binding::end_point(session);
        }
    }

    fn verified_by(&self) -> Option<&'static str> {
        self.insists.then_some("channel binding")
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
                    match fields.string().as_str() {
                        "server_version" => self.server_version = fields.string(),
                        "standard_conforming_strings" => self.backslash_escapes = fields.string() == "off",
                        _ => {}
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
            0 => {
                self.check_bound(asked)?;
                return Ok(Turn::Wait);
            }
            3 | 5 if asked.channel_binding == Binding::Require => return Err(Failure::connect(UNBOUND)),
            3 if asked.exposed() => {
                let text = "the server asks for the plaintext password over an unencrypted connection: refused. Use scram-sha-256 or TLS";
                return Err(Failure::connect(text));
            }
            3 => {
                self.method = "password";
                frontend::password_message(secret()?.as_bytes(), &mut answer).map_err(internal)?;
            }
            5 if asked.unverified() => {
                let text = "the server asks for an md5 answer, from which a man in the middle soon guesses the password, and no certificate \
                            verifies it: refused. Use scram-sha-256, or TLS with verify=full";
                return Err(Failure::connect(text));
            }
            5 => {
                self.method = "md5";
                let salt = fields.bytes(4).try_into().map_err(|_| Failure::connect("a salt of the wrong length"))?;
                let hash = md5_hash(asked.user.as_bytes(), secret()?.as_bytes(), salt);
                frontend::password_message(hash.as_bytes(), &mut answer).map_err(internal)?;
            }
            10 => {
                let (name, binding) = self.binding(fields.0, asked)?;
                let scram = ScramSha256::new(secret()?.as_bytes(), binding);
                frontend::sasl_initial_response(name, scram.message(), &mut answer).map_err(internal)?;
                self.scram = Some(scram);
                self.method = if name == SCRAM_SHA_256_PLUS { BOUND } else { "scram-sha-256" };
            }
            11 => {
                let scram = self.scram.as_mut().ok_or_else(|| Failure::connect("SCRAM out of order"))?;
                check_iterations(fields.0)?;
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

    /// The SCRAM mechanism to use, of those that the server offers, and what it is bound to.
    fn binding(&self, offered: &[u8], asked: &Server) -> Result<(&'static str, ChannelBinding)> {
        let plus = offered.split(|byte| *byte == 0).any(|name| name == SCRAM_SHA_256_PLUS.as_bytes());
        match (&self.end_point, asked.channel_binding) {
            (_, Binding::Disable) => Ok((SCRAM_SHA_256, ChannelBinding::unsupported())),
            (Some(hash), _) if plus => Ok((SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash.clone()))),
            (_, Binding::Require) => Err(Failure::connect(UNBOUND)),
            // The server sees that we could have: if it could too, somebody has changed its list.
            (Some(_), Binding::Prefer) => Ok((SCRAM_SHA_256, ChannelBinding::unrequested())),
            (None, Binding::Prefer) => Ok((SCRAM_SHA_256, ChannelBinding::unsupported())),
        }
    }

    fn check_bound(&mut self, asked: &Server) -> Result<()> {
        if asked.channel_binding == Binding::Require && self.method != BOUND {
            return Err(Failure::connect(UNBOUND));
        }
        self.insists = asked.channel_binding == Binding::Require;
        Ok(())
    }
}

/// The server's first message of SCRAM: `r=NONCE,s=SALT,i=ITERATIONS`. What is no number there, the library refuses.
fn check_iterations(message: &[u8]) -> Result<()> {
    let text = String::from_utf8_lossy(message);
    let asked =
        text.split(',').filter_map(|part| part.strip_prefix("i=")).find_map(|number| number.parse::<u32>().ok());
    match asked {
        Some(few) if few < FEWEST_ITERATIONS => Err(Failure::connect(format!(
            "the server asks for {few} SCRAM iterations, and fewer than {FEWEST_ITERATIONS} protect no password: refused. Set \
             scram_iterations to {FEWEST_ITERATIONS} or more, and give the user its password again"
        ))),
        Some(many) if many > MOST_ITERATIONS => Err(Failure::connect(format!(
            "the server asks for {many} SCRAM iterations; at most {MOST_ITERATIONS} are made"
        ))),
        _ => Ok(()),
    }
}

fn scram_failed(error: std::io::Error) -> Failure {
    Failure::connect(format!("SCRAM authentication failed: {error}"))
}

fn internal(error: std::io::Error) -> Failure {
    Failure::connect(format!("cannot be sent to a server: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::network::wire::{Inbox as _, Login as _};
    use crate::message::{Connect, Line, Request};

    /// A server at this host, asked for with more fields.
    fn server(host: &str, more: &str) -> Server {
        let line = format!(
            r#"{{"type":"connect","driver":"postgres","arm":"a","host":"{host}","port":1,"user":"me","database":"d","password":"p"{more}}}"#
        );
        match Line::read(line.as_bytes()).and_then(Line::request).unwrap() {
            Request::Connect(Connect::Postgres(_, server)) => *server,
            other => panic!("{other:?}"),
        }
    }

    /// What the client sends after these messages of the server, and how the login succeeded.
    fn after(host: &str, messages: &[(u8, &[u8])]) -> (Vec<Vec<u8>>, Result<String>) {
        let asked = server(host, "");
        let (mut login, mut inbox, mut sent) = (Login::default(), Inbox::default(), Vec::new());
        for (tag, body) in messages {
            let bytes = [&[*tag], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat();
            let fill = |into: &mut [u8]| {
                into[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            };
            inbox.buffer().fill(fill).unwrap();
            match login.hear(&mut inbox, &asked) {
                Ok(Turn::Wait) => {}
                Ok(Turn::Send(bytes)) => sent.push(bytes),
                Ok(Turn::Ready) => return (sent, Ok(login.auth())),
                Ok(Turn::Encrypt(..)) => panic!("TLS comes before the login"),
                Err(failure) => return (sent, Err(failure)),
            }
        }
        (sent, Err(Failure::internal("not let in")))
    }

    /// The mechanism that is chosen of those that the server offers.
    fn chosen(binding: &str, end_point: Option<&[u8]>, offered: &[u8]) -> Result<&'static str> {
        let asked = server("h", &format!(r#","tls":"require","channel_binding":"{binding}""#));
        let login = Login { end_point: end_point.map(<[u8]>::to_vec), ..Login::default() };
        login.binding(offered, &asked).map(|(name, _)| name)
    }

    #[test]
    fn a_login_is_bound_where_both_ends_can_and_refused_where_it_must_be_and_is_not() {
        let (both, one) = (&b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"[..], &b"SCRAM-SHA-256\0\0"[..]);
        let hash = Some(&[7; 32][..]);
        assert_eq!(chosen("prefer", hash, both).unwrap(), SCRAM_SHA_256_PLUS);
        assert_eq!(chosen("require", hash, both).unwrap(), SCRAM_SHA_256_PLUS);
        for (binding, end_point, offered) in [("disable", hash, both), ("prefer", hash, one), ("prefer", None, both)] {
            assert_eq!(chosen(binding, end_point, offered).unwrap(), SCRAM_SHA_256, "{binding}");
        }
        assert!(chosen("require", hash, one).unwrap_err().text.contains("channel_binding"));
        assert!(chosen("require", None, both).unwrap_err().text.contains("channel_binding"));
    }

    const LET_IN: [(u8, &[u8]); 2] = [(b'R', &[0; 4]), (b'Z', b"I")];

    #[test]
    fn the_answer_says_how_we_were_let_in() {
        let auth = |host, asked: &[u8]| after(host, &[&[(b'R', asked)], &LET_IN[..]].concat()).1;
        assert_eq!(after("127.0.0.1", &LET_IN).1.unwrap(), "trust");
        assert_eq!(auth("127.0.0.1", b"\0\0\0\x03").unwrap(), "password");
        assert_eq!(auth("127.0.0.1", b"\0\0\0\x05salt").unwrap(), "md5");
        assert_eq!(auth("10.0.0.1", b"\0\0\0\x0aSCRAM-SHA-256\0\0").unwrap(), "scram-sha-256");
    }

    #[test]
    fn the_password_never_leaves_this_machine_in_clear() {
        let (sent, refused) = after("10.0.0.1", &[(b'R', b"\0\0\0\x03")]);
        assert!(sent.is_empty());
        assert!(refused.unwrap_err().text.contains("refused"));
    }

    #[test]
    fn md5_is_answered_only_here_or_to_a_verified_server() {
        let (sent, refused) = after("10.0.0.1", &[(b'R', b"\0\0\0\x05salt")]);
        assert!(sent.is_empty());
        assert!(refused.unwrap_err().text.contains("md5 answer"));
    }

    #[test]
    fn few_iterations_get_no_proof() {
        for (host, iterations, words) in [
            ("127.0.0.1", "1", "1 SCRAM iterations"),
            ("10.0.0.1", "4095", "4095 SCRAM iterations"),
            ("10.0.0.1", "4294967295", "at most"),
        ] {
            let first = format!("\0\0\0\x0br=x,s=c2FsdA==,i={iterations}");
            let messages = [(b'R', &b"\0\0\0\x0aSCRAM-SHA-256\0\0"[..]), (b'R', first.as_bytes())];
            let (sent, refused) = after(host, &messages);
            assert_eq!(sent.len(), 1, "only the request");
            assert!(refused.unwrap_err().text.contains(words), "{iterations}");
        }
        assert!(check_iterations(b"r=x,s=c2FsdA==,i=4096").is_ok());
    }
}
