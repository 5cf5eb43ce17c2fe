//! The client's side of the login, from the server's greeting on.

use super::answers::{Answers, read_ok};
use super::outbox::Outbox;
use super::packets::{END, ERROR, Fields, HEADER_BYTES, Message, OK, error_of, length, stranger};
use super::scramble;
use crate::connection::Step;
use crate::drivers::network::wire::{self, Turn};
use crate::failure::{Failure, Result};
use crate::message::{Server, Tls};
use crate::transport::self_signed::SelfSigned;
use crate::transport::socket::Socket;
use openssl::sha::sha256;
use std::io;

/// Capabilities of client and server.
const LONG_PASSWORD: u32 = 1;
const LONG_FLAG: u32 = 1 << 2;
const CONNECT_WITH_DB: u32 = 1 << 3;
const PROTOCOL_41: u32 = 1 << 9;
const SSL: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const MULTI_RESULTS: u32 = 1 << 17;
const PS_MULTI_RESULTS: u32 = 1 << 18;
const PLUGIN_AUTH: u32 = 1 << 19;
const DEPRECATE_EOF: u32 = 1 << 24;

/// MariaDB's own capability: a prepared statement's columns are described only when they have changed. Its client library asks
/// for it too. MariaDB's extensions are in use if neither side sets `LONG_PASSWORD`, which no server needs any more.
const CACHE_METADATA: u32 = 1 << 4;

/// Required capabilities: a server without them is too old for this driver.
const NEEDED: u32 = PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | PLUGIN_AUTH | DEPRECATE_EOF;
/// Neither compression nor connection attributes: both arms must send exactly what was requested.
const WANTED: u32 = NEEDED | LONG_PASSWORD | LONG_FLAG | MULTI_RESULTS | PS_MULTI_RESULTS;

const PROTOCOL_VERSION: u8 = 10;
const LONGEST_GREETING_BYTES: usize = 4096;
const LONGEST_PACKET_BYTES: u32 = 1 << 30;
/// utf8mb4 with each server's own default collation.
const UTF8MB4_GENERAL_CI: u8 = 45;
const UTF8MB4_0900_AI_CI: u8 = 255;

const NATIVE: &str = "mysql_native_password";
const CACHING_SHA2: &str = "caching_sha2_password";
/// The older plugin, which caches nothing. MySQL names it at random for an unknown account.
const SHA256: &str = "sha256_password";
const ED25519: &str = "client_ed25519";
const PARSEC: &str = "parsec";
const CLEAR: &str = "mysql_clear_password";
/// Plugins with which MariaDB's server proves its certificate; a man in the middle learns nothing from them.
const PROVE: [&str; 3] = [NATIVE, ED25519, PARSEC];

/// Prefix of a server's message in a plugin's dialogue; caching_sha2_password continues with FAST or FULL.
const MORE: u8 = 0x01;
const FAST: &[u8] = &[3];
const FULL: &[u8] = &[4];

/// One login in progress.
#[derive(Default)]
pub struct Login {
    /// The received part of the greeting.
    received: Vec<u8>,
    version: String,
    capabilities: u32,
    /// MariaDB's extensions among the server's capabilities.
    extensions: u32,
    nonce: Vec<u8>,
    plugin: String,
    /// How the plugin authenticated.
    way: &'static str,
    key_asked: bool,
    /// The first nonce, which the proof of a certificate contains.
    first_nonce: Vec<u8>,
    /// The certificate that the server must still prove.
    certificate: Option<SelfSigned>,
    has_proven: bool,
    /// What the server stores of the password, as the plugin makes it.
    stored: Vec<u8>,
    /// The number of our next packet.
    number: u8,
    answered: bool,
}

impl wire::Login<Answers> for Login {
    /// Reads the greeting and requests TLS. Unencrypted bytes after the greeting could come from someone else.
    fn greet(&mut self, socket: &Socket, asked: &Server) -> Result<Step> {
        loop {
            if let [a, b, c, number, ..] = *self.received {
                let size = HEADER_BYTES + length(a, b, c);
                if number != 0 || size > LONGEST_GREETING_BYTES {
                    return Err(stranger());
                }
                if self.received.len() > size {
                    let text = "the server sent unencrypted bytes behind its greeting, before the login";
                    return Err(if asked.tls == Tls::Off { Failure::connect(text) } else { Failure::tls(text) });
                }
                if self.received.len() == size {
                    break;
                }
            }
            let mut room = [0; 1024];
            match socket.receive(&mut room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Step::Pending),
                Err(error) => return Err(error.into()),
                Ok(0) => return Err(Failure::connect("the server closed the connection without a greeting")),
                Ok(read) => self.received.extend_from_slice(&room[..read]),
            }
        }
        let greeting = std::mem::take(&mut self.received);
        self.read_greeting(&greeting[HEADER_BYTES..])?;
        self.number = 1;
        if asked.tls != Tls::Off {
            if self.capabilities & SSL == 0 {
                return Err(Failure::tls("the server does not offer TLS"));
            }
            socket.send_all(&self.packet(|into| self.head(asked, into)))?;
            self.number += 1;
        }
        if self.capabilities & NEEDED != NEEDED {
            let text = format!("the server ({}) is too old: MySQL 5.7.5 or MariaDB 10.2 is the oldest", self.version);
            return Err(Failure::connect(text));
        }
        Ok(Step::Done)
    }

    fn must_prove(&mut self, certificate: SelfSigned) {
        self.certificate = Some(certificate);
    }

    fn verified_by(&self) -> Option<&'static str> {
        self.has_proven.then_some("password")
    }

    fn first(&mut self, asked: &Server) -> Result<Vec<u8>> {
        if let Some(certificate) = &self.certificate {
            if !self.version.contains("MariaDB") {
                return Err(unproven(
                    certificate,
                    "only MariaDB, 11.4 and later, proves such a certificate by the password",
                ));
            }
            if password(asked).is_empty() {
                return Err(unproven(certificate, "the account has no password by which the server could prove it"));
            }
        }
        // The server announces the account's plugin if it differs from the greeting's.
        let known = if self.certificate.is_some() { &[ED25519][..] } else { &[CACHING_SHA2, ED25519] };
        if !known.contains(&self.plugin.as_str()) {
            self.plugin = NATIVE.to_string();
        }
        let secret = self.secret(asked)?;
        let packet = self.packet(|into| {
            self.head(asked, into);
            into.extend_from_slice(asked.user.as_bytes());
            into.extend_from_slice(&[0, secret.len() as u8]);
            into.extend_from_slice(&secret);
            if let Some(database) = database(asked) {
                into.extend_from_slice(database.as_bytes());
                into.push(0);
            }
            into.extend_from_slice(self.plugin.as_bytes());
            into.push(0);
        });
        self.number = self.number.wrapping_add(1);
        Ok(packet)
    }

    fn hear(&mut self, inbox: &mut Answers, asked: &Server) -> Result<Turn> {
        if !self.answered {
            inbox.packets.expect(self.number);
            self.answered = true;
        }
        while let Some(message) = inbox.packets.next(false)? {
            let Message::Other(body) = message else { return Err(stranger()) };
            let answer = match body[0] {
                OK => {
                    let (status, text) = read_ok(body)?;
                    self.check_certificate(text)?;
                    inbox.status = status;
                    inbox.says_if_described = self.caches_metadata();
                    return Ok(Turn::Ready);
                }
                ERROR => return Err(error_of(body).lost()),
                END => self.switch(&body[1..], asked)?,
                MORE if [CACHING_SHA2, SHA256].contains(&self.plugin.as_str()) => {
                    match self.go_on(&body[1..], asked)? {
                        Some(answer) => answer,
                        None => continue,
                    }
                }
                MORE if self.plugin == PARSEC => self.sign(&body[1..], asked)?,
                b'P' if self.plugin == PARSEC => self.sign(body, asked)?,
                _ => return Err(stranger()),
            };
            self.number = inbox.packets.number();
            inbox.packets.expect(self.number.wrapping_add(1));
            return Ok(Turn::Send(self.packet(|into| into.extend_from_slice(&answer))));
        }
        Ok(Turn::Wait)
    }

    fn server_version(&self) -> String {
        clean(&self.version).to_string()
    }

    fn auth(&self) -> String {
        format!("{}{}", self.plugin, self.way)
    }
}

impl Login {
    fn read_greeting(&mut self, body: &[u8]) -> Result<()> {
        match body.first() {
            Some(&PROTOCOL_VERSION) => {}
            Some(&ERROR) => return Err(error_of(body).lost()),
            _ => return Err(stranger()),
        }
        let mut fields = Fields(&body[1..]);
        self.version = String::from_utf8_lossy(fields.string()).into_owned();
        // The connection's number.
        fields.u32()?;
        self.nonce = fields.bytes(8)?.to_vec();
        fields.u8()?;
        let low = fields.u16()?;
        // Character set and status.
        fields.bytes(3)?;
        self.capabilities = u32::from(low) | u32::from(fields.u16()?) << 16;
        let nonce_bytes = usize::from(fields.u8()?);
        fields.bytes(6)?;
        self.extensions = fields.u32()?;
        if self.capabilities & SECURE_CONNECTION != 0 {
            let rest = nonce_bytes.saturating_sub(8).max(13);
            self.nonce.extend_from_slice(&fields.bytes(rest)?[..12]);
        }
        self.plugin = String::from_utf8_lossy(fields.string()).into_owned();
        self.first_nonce = self.nonce.clone();
        Ok(())
    }

    /// The common beginning of the TLS request and the login.
    fn head(&self, asked: &Server, into: &mut Vec<u8>) {
        let mut capabilities = WANTED & (self.capabilities | LONG_PASSWORD);
        let mut extensions = 0;
        if self.caches_metadata() {
            capabilities &= !LONG_PASSWORD;
            extensions = CACHE_METADATA;
        }
        if asked.tls != Tls::Off {
            capabilities |= SSL;
        }
        if database(asked).is_some() {
            capabilities |= CONNECT_WITH_DB;
        }
        into.extend_from_slice(&capabilities.to_le_bytes());
        into.extend_from_slice(&LONGEST_PACKET_BYTES.to_le_bytes());
        let mysql_8 = !self.version.contains("MariaDB")
            && clean(&self.version)
                .split('.')
                .next()
                .and_then(|major| major.parse().ok())
                .is_some_and(|major: u32| major >= 8);
        into.push(if mysql_8 { UTF8MB4_0900_AI_CI } else { UTF8MB4_GENERAL_CI });
        into.extend_from_slice(&[0; 19]);
        into.extend_from_slice(&extensions.to_le_bytes());
    }

    /// Whether the server leaves out the description of columns that the client knows already.
    fn caches_metadata(&self) -> bool {
        self.capabilities & LONG_PASSWORD == 0 && self.extensions & CACHE_METADATA != 0
    }

    fn packet(&self, fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let at = Outbox(&mut bytes).begin(self.number);
        fill(&mut bytes);
        Outbox(&mut bytes).end(at);
        bytes
    }

    /// Switches to the account's plugin if it differs from the one that we answered for.
    fn switch(&mut self, body: &[u8], asked: &Server) -> Result<Vec<u8>> {
        let mut fields = Fields(body);
        self.plugin = String::from_utf8_lossy(fields.string()).into_owned();
        self.nonce = fields.0.to_vec();
        self.way = "";
        self.secret(asked)
    }

    /// The plugin's first response.
    fn secret(&mut self, asked: &Server) -> Result<Vec<u8>> {
        let password = password(asked);
        if let (Some(certificate), false) = (&self.certificate, PROVE.contains(&self.plugin.as_str())) {
            let plugin = &self.plugin;
            return Err(unproven(
                certificate,
                &format!("the account's authentication plugin {plugin:?} can't prove it"),
            ));
        }
        let nonce = |length| self.nonce.get(..length).ok_or_else(|| Failure::connect("a nonce of the wrong length"));
        if password.is_empty() && [NATIVE, CACHING_SHA2, SHA256].contains(&self.plugin.as_str()) {
            self.way = ", no password";
            return Ok(Vec::new());
        }
        match self.plugin.as_str() {
            NATIVE => {
                self.stored = scramble::native_stored(password).to_vec();
                Ok(scramble::native(password, nonce(20)?).to_vec())
            }
            CACHING_SHA2 => Ok(scramble::caching_sha2(password, nonce(20)?).to_vec()),
            SHA256 => self.whole_password(asked),
            ED25519 => {
                self.stored = scramble::ed25519_stored(password).to_vec();
                Ok(scramble::ed25519(password, nonce(32)?).to_vec())
            }
            // Asks for the salt.
            PARSEC => Ok(Vec::new()),
            CLEAR if !matches!(asked.tls, Tls::VerifyCa | Tls::VerifyFull) => {
                let lacking = if asked.tls == Tls::Off { "TLS" } else { "a verified server" };
                Err(Failure::connect(format!(
                    "the server asks for the plaintext password (mysql_clear_password): refused without {lacking}"
                )))
            }
            CLEAR => Ok(with_zero(password)),
            other => {
                let known = [CACHING_SHA2, SHA256, NATIVE, ED25519, PARSEC, CLEAR].join(", ");
                let text = format!("the account's authentication plugin {other:?} is not known here, only {known}");
                Err(Failure::connect(text))
            }
        }
    }

    /// The answer to a salt of parsec.
    fn sign(&mut self, said: &[u8], asked: &Server) -> Result<Vec<u8>> {
        let nonce = self.nonce.get(..32).ok_or_else(stranger)?;
        let (answer, stored) = scramble::parsec(password(asked), nonce, said)?;
        self.stored = stored;
        Ok(answer)
    }

    /// Verifies a self-signed certificate by the text of the OK packet: a 1, and in hex the SHA-256 of what the server stores of the
    /// password, its first nonce and the certificate's fingerprint.
    fn check_certificate(&mut self, text: &[u8]) -> Result<()> {
        let Some(certificate) = &self.certificate else { return Ok(()) };
        let [1, hex @ ..] = text else {
            return Err(unproven(
                certificate,
                "the server has not proven it by the password, as MariaDB 11.4 and later do",
            ));
        };
        let proof = sha256(&[&self.stored, &self.first_nonce, &certificate.fingerprint[..]].concat());
        let wanted: String = proof.iter().map(|byte| format!("{byte:02X}")).collect();
        if self.stored.is_empty() || !hex.eq_ignore_ascii_case(wanted.as_bytes()) {
            // It is the wrong one to trust, so nothing is said of --ca.
            return Err(Failure::tls(format!(
                "the server's certificate ({}) is not that of the server that knows the password: there is a man in the middle",
                certificate.subject
            )));
        }
        self.has_proven = true;
        Ok(())
    }

    /// The server knows the password from an earlier login, asks for the password itself, or sends its public key.
    fn go_on(&mut self, said: &[u8], asked: &Server) -> Result<Option<Vec<u8>>> {
        match said {
            key if std::mem::take(&mut self.key_asked) => {
                let nonce = self.nonce.get(..20).ok_or_else(stranger)?;
                scramble::by_public_key(password(asked), nonce, key).map(Some)
            }
            FAST => {
                self.way = " fast";
                Ok(None)
            }
            FULL => self.whole_password(asked).map(Some),
            _ => Err(stranger()),
        }
    }

    /// The password itself under TLS, and by a Unix socket, which MySQL takes for as secure; otherwise the request for the server's public key.
    fn whole_password(&mut self, asked: &Server) -> Result<Vec<u8>> {
        if asked.tls != Tls::Off {
            self.way = " full (TLS)";
            return Ok(with_zero(password(asked)));
        }
        if asked.socket.is_some() && self.plugin == CACHING_SHA2 {
            self.way = " full (socket)";
            return Ok(with_zero(password(asked)));
        }
        if asked.exposed() {
            let text = format!(
                "the server asks for the whole password ({}), over an unencrypted connection to another machine, where its \
                 public key could be anybody's: refused. Log in over TLS; caching_sha2_password then remembers the \
                 account until the server restarts",
                self.plugin
            );
            return Err(Failure::connect(text));
        }
        self.way = " full (RSA)";
        self.key_asked = true;
        Ok(vec![if self.plugin == SHA256 { 1 } else { 2 }])
    }
}

/// A self-signed certificate was not verified by the password.
fn unproven(certificate: &SelfSigned, why: &str) -> Failure {
    let subject = &certificate.subject;
    Failure::tls(format!(
        "the server's certificate ({subject}) is signed by an unknown authority, by itself, and {why}; name a file with that \
         authority with --ca"
    ))
}

fn password(asked: &Server) -> &[u8] {
    asked.password.as_deref().unwrap_or_default().as_bytes()
}

fn database(asked: &Server) -> Option<&str> {
    asked.database.as_deref().filter(|name| !name.is_empty())
}

fn with_zero(password: &[u8]) -> Vec<u8> {
    [password, b"\0"].concat()
}

/// "5.5.5-10.11.6-MariaDB-0+deb12u1" -> "10.11.6": without the prefix for old replicas and the packager's name.
fn clean(version: &str) -> &str {
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    version.split(|letter: char| !letter.is_ascii_digit() && letter != '.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
