//! login: the server's greeting and what it asks for -> what a client answers, until it is let in.

use super::answers::{Answers, status_of};
use super::outbox::Outbox;
use super::packets::{END, ERROR, Fields, HEADER_BYTES, Message, OK, error_of, length, stranger};
use super::scramble;
use crate::connection::Step;
use crate::drivers::network::wire::{self, Turn};
use crate::failure::{Failure, Result};
use crate::message::{Server, Tls};
use crate::transport::socket::Socket;
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

/// Without these a server is too old for this driver.
const NEEDED: u32 = PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | PLUGIN_AUTH | DEPRECATE_EOF;
/// Neither compression nor attributes of the connection: both arms are to send what they are asked to, and no more.
const WANTED: u32 = NEEDED | LONG_PASSWORD | LONG_FLAG | MULTI_RESULTS | PS_MULTI_RESULTS;

const PROTOCOL_VERSION: u8 = 10;
const LONGEST_GREETING_BYTES: usize = 4096;
const LONGEST_PACKET_BYTES: u32 = 1 << 30;
/// utf8mb4, with the collation that is each server's own default.
const UTF8MB4_GENERAL_CI: u8 = 45;
const UTF8MB4_0900_AI_CI: u8 = 255;

const NATIVE: &str = "mysql_native_password";
const CACHING_SHA2: &str = "caching_sha2_password";
/// The older one, which remembers nobody. MySQL names it at random where there is no such account.
const SHA256: &str = "sha256_password";
const ED25519: &str = "client_ed25519";
const CLEAR: &str = "mysql_clear_password";

/// Begins what a server says within a plugin's dialogue; caching_sha2_password goes on with FAST or FULL.
const MORE: u8 = 0x01;
const FAST: &[u8] = &[3];
const FULL: &[u8] = &[4];

/// One login in progress.
#[derive(Default)]
pub struct Login {
    /// What has come of the greeting.
    received: Vec<u8>,
    version: String,
    capabilities: u32,
    nonce: Vec<u8>,
    plugin: String,
    /// How the plugin went about it.
    way: &'static str,
    key_asked: bool,
    /// The number of our next packet.
    number: u8,
    answered: bool,
}

impl wire::Login<Answers> for Login {
    /// Takes the greeting, and asks for TLS. Whatever follows the greeting in clear would be someone else's.
    fn greet(&mut self, socket: &Socket, asked: &Server) -> Result<Step> {
        loop {
            if let [a, b, c, number, ..] = *self.received {
                let size = HEADER_BYTES + length(a, b, c);
                if number != 0 || size > LONGEST_GREETING_BYTES || self.received.len() > size {
                    return Err(stranger());
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

    fn first(&mut self, asked: &Server) -> Result<Vec<u8>> {
        // The server says which plugin the account has if it is another one than the greeting's.
        if ![CACHING_SHA2, ED25519].contains(&self.plugin.as_str()) {
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
                    inbox.status = status_of(body)?;
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
        fields.bytes(10)?;
        if self.capabilities & SECURE_CONNECTION != 0 {
            let rest = nonce_bytes.saturating_sub(8).max(13);
            self.nonce.extend_from_slice(&fields.bytes(rest)?[..12]);
        }
        self.plugin = String::from_utf8_lossy(fields.string()).into_owned();
        Ok(())
    }

    /// What both the request for TLS and the login begin with.
    fn head(&self, asked: &Server, into: &mut Vec<u8>) {
        let mut capabilities = WANTED & (self.capabilities | LONG_PASSWORD);
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
        into.extend_from_slice(&[0; 23]);
    }

    fn packet(&self, fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let at = Outbox(&mut bytes).begin(self.number);
        fill(&mut bytes);
        Outbox(&mut bytes).end(at);
        bytes
    }

    /// The account has another plugin than the one that we answered for.
    fn switch(&mut self, body: &[u8], asked: &Server) -> Result<Vec<u8>> {
        let mut fields = Fields(body);
        self.plugin = String::from_utf8_lossy(fields.string()).into_owned();
        self.nonce = fields.0.to_vec();
        self.way = "";
        self.secret(asked)
    }

    /// The plugin's first answer.
    fn secret(&mut self, asked: &Server) -> Result<Vec<u8>> {
        let password = password(asked);
        let nonce = |length| self.nonce.get(..length).ok_or_else(|| Failure::connect("a nonce of the wrong length"));
        if password.is_empty() && [NATIVE, CACHING_SHA2, SHA256].contains(&self.plugin.as_str()) {
            self.way = ", no password";
            return Ok(Vec::new());
        }
        match self.plugin.as_str() {
            NATIVE => Ok(scramble::native(password, nonce(20)?).to_vec()),
            CACHING_SHA2 => Ok(scramble::caching_sha2(password, nonce(20)?).to_vec()),
            SHA256 => self.whole_password(asked),
            ED25519 => Ok(scramble::ed25519(password, nonce(32)?).to_vec()),
            CLEAR if asked.tls == Tls::Off => {
                let text = "the server asks for the password in clear (mysql_clear_password): refused without TLS";
                Err(Failure::connect(text))
            }
            CLEAR => Ok(with_zero(password)),
            other => {
                let known = [CACHING_SHA2, SHA256, NATIVE, ED25519, CLEAR].join(", ");
                let text = format!("the account's authentication plugin {other:?} is not known here, only {known}");
                Err(Failure::connect(text))
            }
        }
    }

    /// The server knows the password from an earlier login, or wants it whole, or sends its public key.
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

    /// The password as it is under TLS; in clear, the request for the server's public key.
    fn whole_password(&mut self, asked: &Server) -> Result<Vec<u8>> {
        if asked.tls != Tls::Off {
            self.way = " full (TLS)";
            return Ok(with_zero(password(asked)));
        }
        if asked.exposed() {
            let text = format!(
                "the server asks for the whole password ({}), over a connection in clear to another machine, where its \
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

fn password(asked: &Server) -> &[u8] {
    asked.password.as_deref().unwrap_or_default().as_bytes()
}

fn database(asked: &Server) -> Option<&str> {
    asked.database.as_deref().filter(|name| !name.is_empty())
}

fn with_zero(password: &[u8]) -> Vec<u8> {
    [password, b"\0"].concat()
}

/// "5.5.5-10.11.6-MariaDB-0+deb12u1" -> "10.11.6": what old replicas must read, and the packager's name, are no part.
fn clean(version: &str) -> &str {
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    version.split(|letter: char| !letter.is_ascii_digit() && letter != '.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::network::wire::{Inbox, Login as _};
    use crate::message::{Connect, Line, Request};
    use crate::transport::socket::Mode;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";

    fn asked(fields: &str) -> Server {
        let line = format!(r#"{{"type":"connect","driver":"mysql","arm":"a","port":1,"user":"me",{fields}}}"#);
        match Line::read(line.as_bytes()).and_then(Line::request).unwrap() {
            Request::Connect(Connect::Mysql(_, server)) => *server,
            other => panic!("{other:?}"),
        }
    }

    fn here(password: &str) -> Server {
        asked(&format!(r#""host":"127.0.0.1","password":"{password}""#))
    }

    fn greeting(version: &str, plugin: &str, capabilities: u32) -> Vec<u8> {
        let flags = capabilities.to_le_bytes();
        let (low, high) = flags.split_at(2);
        let nonce = [&NONCE[8..], b"\0"].concat();
        let version = [version.as_bytes(), b"\0"].concat();
        let plugin = [plugin.as_bytes(), b"\0"].concat();
        [
            &b"\x0a"[..],
            &version,
            b"\x01\0\0\0",
            &NONCE[..8],
            b"\0",
            low,
            b"\xff\x02\0",
            high,
            b"\x15",
            &[0; 10],
            &nonce,
            &plugin,
        ]
        .concat()
    }

    fn packet(number: u8, body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32).to_le_bytes()[..3], &[number], body].concat()
    }

    /// A login to a server that says these bytes at once; and what the server then receives.
    fn greeted(said: &[u8], asked: &Server) -> (Result<Step>, Login, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = Socket::open(listener.local_addr().unwrap(), Mode::Blocking).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        peer.write_all(said).unwrap();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        let mut login = Login::default();
        let step = login.greet(&socket, asked);
        drop(socket);
        let mut heard = Vec::new();
        let _ = peer.read_to_end(&mut heard);
        (step, login, heard)
    }

    /// What the login does when the server says this after the client's first packet, and how we were let in.
    fn after(plugin: &str, asked: &Server, said: &[&[u8]]) -> (Vec<Vec<u8>>, Result<String>) {
        let (step, mut login, _) = greeted(&packet(0, &greeting("9.7.4", plugin, NEEDED | SSL)), asked);
        step.unwrap();
        let mut sent = vec![login.first(asked).unwrap()];
        let mut inbox = Answers::default();
        inbox.clear();
        let mut number = login.number;
        for body in said {
            let bytes = packet(number, body);
            inbox
                .buffer()
                .fill(|into| {
                    into[..bytes.len()].copy_from_slice(&bytes);
                    Ok(bytes.len())
                })
                .unwrap();
            number += 1;
            match login.hear(&mut inbox, asked) {
                Ok(Turn::Wait) => {}
                Ok(Turn::Send(bytes)) => {
                    assert_eq!(bytes[3], number);
                    number += 1;
                    sent.push(bytes[HEADER_BYTES..].to_vec());
                }
                Ok(Turn::Ready) => return (sent, Ok(login.auth())),
                Ok(Turn::Encrypt(..)) => panic!("TLS comes before the login"),
                Err(failure) => return (sent, Err(failure)),
            }
        }
        (sent, Err(Failure::internal("not let in")))
    }

    const LET_IN: &[u8] = b"\0\0\0\x02\0\0\0";

    #[test]
    fn versions_are_clean() {
        assert_eq!(clean("5.5.5-10.11.6-MariaDB-0+deb12u1"), "10.11.6");
        assert_eq!(clean("11.8.6-MariaDB-0+deb13u1 from Debian"), "11.8.6");
        assert_eq!(clean("9.7.4"), "9.7.4");
        assert_eq!(clean("8.0.36-0ubuntu0.22.04.1"), "8.0.36");
    }

    #[test]
    fn a_greeting_is_read_and_tls_is_asked_for_before_anything_else() {
        let bytes = packet(0, &greeting("9.7.4", CACHING_SHA2, NEEDED | SSL));
        let (step, login, heard) = greeted(&bytes, &asked(r#""host":"127.0.0.1","tls":"require","password":"p""#));
        assert_eq!(step.unwrap(), Step::Done);
        assert_eq!((login.server_version().as_str(), login.nonce.as_slice()), ("9.7.4", &NONCE[..]));
        assert_eq!((heard.len(), heard[3], heard[5] & 8), (36, 1, 8), "{heard:?}");
        let (step, _, heard) = greeted(&bytes, &here("p"));
        assert_eq!((step.unwrap(), heard.len()), (Step::Done, 0));
    }

    #[test]
    fn a_greeting_that_cannot_be_used_is_refused_in_clear_words() {
        let tls = asked(r#""host":"127.0.0.1","tls":"require""#);
        let refused = |said: &[u8], asked: &Server| {
            let (step, _, heard) = greeted(said, asked);
            assert!(heard.is_empty(), "nothing may be said to it");
            step.unwrap_err()
        };
        let good = packet(0, &greeting("9.7.4", CACHING_SHA2, NEEDED | SSL));
        let no_tls = packet(0, &greeting("9.7.4", CACHING_SHA2, NEEDED));
        assert_eq!(refused(&no_tls, &tls).code, "tls");
        // What follows in clear was not said by the server that TLS will prove.
        assert_eq!(refused(&[&good[..], b"x"].concat(), &tls).code, "connect");
        let old = packet(0, &greeting("5.5.62", NATIVE, NEEDED & !DEPRECATE_EOF));
        assert!(refused(&old, &here("")).text.contains("too old"));
        let full = packet(0, b"\xff\x10\x04Too many connections");
        assert_eq!(refused(&full, &tls).to_string(), "1040: Too many connections");
        for bytes in [&b""[..], b"SSH-2.0-OpenSSH_9.2\r\n", b"\x02\0\0\0\x09x", b"\0\0\0\0"] {
            assert_eq!(refused(bytes, &here("")).code, "connect");
        }
        for length in 0..good.len() - HEADER_BYTES - CACHING_SHA2.len() - 1 {
            let cut = packet(0, &good[HEADER_BYTES..HEADER_BYTES + length]);
            assert_eq!(refused(&cut, &here("")).code, "connect", "cut to {length}");
        }
    }

    #[test]
    fn the_first_packet_bears_user_scramble_database_and_plugin() {
        let (sent, let_in) = after(NATIVE, &asked(r#""host":"127.0.0.1","password":"p","database":"shop""#), &[LET_IN]);
        let scrambled = scramble::native(b"p", NONCE);
        let tail = [&b"me\0\x14"[..], &scrambled, b"shop\0mysql_native_password\0"].concat();
        assert!(sent[0].ends_with(&tail));
        assert_eq!(let_in.unwrap(), NATIVE);
    }

    #[test]
    fn caching_sha2_is_fast_where_the_server_remembers_the_password() {
        let (sent, let_in) = after(CACHING_SHA2, &here("p"), &[b"\x01\x03", LET_IN]);
        assert_eq!((sent.len(), let_in.unwrap().as_str()), (1, "caching_sha2_password fast"));
    }

    #[test]
    fn caching_sha2_sends_the_password_whole_only_under_tls_or_the_servers_key() {
        let tls = asked(r#""host":"10.0.0.1","tls":"require","password":"p""#);
        let (sent, let_in) = after(CACHING_SHA2, &tls, &[b"\x01\x04", LET_IN]);
        assert_eq!((sent[1].as_slice(), let_in.unwrap().as_str()), (&b"p\0"[..], "caching_sha2_password full (TLS)"));
        let (sent, refused) = after(CACHING_SHA2, &asked(r#""host":"10.0.0.1","password":"p""#), &[b"\x01\x04"]);
        assert_eq!(sent.len(), 1);
        assert!(refused.unwrap_err().text.contains("refused"));
        // The key is asked for; what is no key gets nothing, and neither does one that was not asked for.
        let (sent, refused) = after(CACHING_SHA2, &here("p"), &[b"\x01\x04", b"\x01garbage"]);
        assert_eq!((sent.len(), sent[1].as_slice()), (2, &b"\x02"[..]));
        assert!(refused.unwrap_err().text.contains("public key"));
        let key = openssl::rsa::Rsa::generate(2048).unwrap();
        let pem = [b"\x01", &key.public_key_to_pem().unwrap()[..]].concat();
        let (sent, let_in) = after(CACHING_SHA2, &here("p"), &[b"\x01\x04", &pem, LET_IN]);
        assert_eq!((sent[2].len(), let_in.unwrap().as_str()), (256, "caching_sha2_password full (RSA)"));
        let (sent, refused) = after(CACHING_SHA2, &here("p"), &[&pem]);
        assert_eq!(sent.len(), 1);
        assert!(refused.is_err());
    }

    #[test]
    fn the_server_may_switch_to_another_plugin_that_is_known() {
        let tls = asked(r#""host":"10.0.0.1","tls":"require","password":"p""#);
        let switch = |plugin: &str, nonce: &[u8]| [&b"\xfe"[..], plugin.as_bytes(), b"\0", nonce].concat();
        let (sent, let_in) = after(CACHING_SHA2, &here("p"), &[&switch(NATIVE, b"ABCDEFGHIJKLMNOPQRST\0"), LET_IN]);
        assert_eq!(sent[1], scramble::native(b"p", b"ABCDEFGHIJKLMNOPQRST"));
        assert_eq!(let_in.unwrap(), NATIVE);
        let (sent, let_in) = after(CACHING_SHA2, &tls, &[&switch(SHA256, NONCE), LET_IN]);
        assert_eq!((sent[1].as_slice(), let_in.unwrap().as_str()), (&b"p\0"[..], "sha256_password full (TLS)"));
        let (sent, refused) = after(CACHING_SHA2, &here("p"), &[&switch(SHA256, NONCE), b"\x01no key"]);
        assert_eq!(sent[1], [1]);
        assert!(refused.unwrap_err().text.contains("public key"));
        let (sent, let_in) = after(NATIVE, &here("p"), &[&switch(ED25519, &[9; 32]), LET_IN]);
        assert_eq!(sent[1], scramble::ed25519(b"p", &[9; 32]));
        assert_eq!(let_in.unwrap(), ED25519);
        for plugin in [CLEAR, "parsec", "auth_gssapi_client", "dialog"] {
            let (sent, refused) = after(NATIVE, &here("p"), &[&switch(plugin, b"")]);
            assert_eq!(sent.len(), 1);
            assert!(refused.unwrap_err().text.contains(plugin));
        }
        let (sent, let_in) = after(NATIVE, &tls, &[&switch(CLEAR, b""), LET_IN]);
        assert_eq!((sent[1].as_slice(), let_in.unwrap().as_str()), (&b"p\0"[..], CLEAR));
        // The password in clear is never the first thing that is said, whatever the greeting wants.
        let (sent, _) = after(CLEAR, &tls, &[LET_IN]);
        assert!(sent[0].ends_with(b"mysql_native_password\0"));
        assert!(after(NATIVE, &here("p"), &[b"\xfe"]).1.is_err(), "the scramble of before 4.1");
    }

    #[test]
    fn a_refusal_is_the_servers_own() {
        let (_, refused) = after(CACHING_SHA2, &here("p"), &[b"\xff\x15\x04#28000Access denied"]);
        let failure = refused.unwrap_err();
        assert_eq!((failure.to_string().as_str(), failure.lost), ("1045 (28000): Access denied", true));
        assert!(after(CACHING_SHA2, &here("p"), &[b"\x07what"]).1.is_err());
    }

    #[test]
    fn whatever_a_server_says_nothing_panics() {
        let mut random = crate::draw::Random::of_operation(8, 8);
        let asked = here("p");
        for _ in 0..2_000 {
            let mut login = Login { plugin: CACHING_SHA2.into(), nonce: NONCE.to_vec(), ..Login::default() };
            let mut inbox = Answers::default();
            inbox.clear();
            let heads =
                [&b"\0"[..], b"\xfe", b"\xfesha256_password\0", b"\xfeclient_ed25519\0", b"\x01", b"\x01\x04", b"\xff"];
            let mut bytes = Vec::new();
            for number in 0..3 {
                let tail: Vec<u8> = (0..random.below(40)).map(|_| random.next() as u8).collect();
                let body = [heads[random.below(7) as usize], &tail].concat();
                // Our own answers take the numbers between.
                bytes.extend_from_slice(&packet(2 * number, &body));
            }
            inbox
                .buffer()
                .fill(|into| {
                    into[..bytes.len()].copy_from_slice(&bytes);
                    Ok(bytes.len())
                })
                .unwrap();
            while let Ok(Turn::Send(_)) = login.hear(&mut inbox, &asked) {}
            let _ = Login::default().read_greeting(&bytes);
        }
    }
}
