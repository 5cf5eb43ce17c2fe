//! The client's side of the login: identity, SRP proof, and the choice of wire encryption.

use super::errors;
use super::format::Format;
use super::inbox::{Inbox, Packet};
use super::srp::{PLUGINS, Srp};
use super::xdr::Put;
use crate::drivers::network::wire::{self, Turn};
use crate::failure::{Failure, Result};
use crate::message::{Firebird, WireCrypt};
use crate::transport::wirecrypt::Ciphers;

const OP_CONNECT: i32 = 1;
const OP_DETACH: i32 = 21;
const OP_ATTACH: i32 = 19;
const OP_CREATE: i32 = 20;
const OP_CONT_AUTH: i32 = 92;
const OP_CRYPT: i32 = 96;
/// Offered protocol versions; from 13 on logins may be encrypted.
const PROTOCOLS: std::ops::RangeInclusive<i32> = 13..=17;
const GENERIC: i32 = 1;
const LAZY: i32 = 5;
const LIST: &str = "Srp256,Srp512,Srp384,Srp224,Srp";
const PAGE_BYTES: i32 = 8192;

/// One login in progress.
pub struct Login {
    stage: Stage,
    /// Created with the first packet.
    srp: Option<Srp>,
    /// The authentication plugin in use.
    plugin: &'static str,
    /// The plugin's next message.
    data: String,
    /// Whether the plugin's name was already sent.
    named: bool,
    session_key: Option<[u8; 20]>,
    offers: Offers,
    /// Version of the protocol.
    pub protocol: i32,
    /// The database's handle, once attached.
    pub database: i32,
}

impl Default for Login {
    fn default() -> Login {
        Login {
            stage: Stage::Greeting,
            srp: None,
            plugin: PLUGINS[0],
            data: String::new(),
            named: true,
            session_key: None,
            offers: Offers::default(),
            protocol: 0,
            database: 0,
        }
    }
}

/// The last request to the server.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// Negotiate a protocol.
    Greeting,
    /// Authenticate before anything else.
    Proving,
    /// Start encryption.
    Encrypting,
    /// Attach the database.
    Attaching,
}

/// Encryption plugins that the server offers after authentication.
#[derive(Default)]
struct Offers {
    plugins: String,
    /// Nonces by plugin.
    specific: Vec<(String, Vec<u8>)>,
}

impl wire::Login<Inbox, Firebird> for Login {
    /// Identifies the user and offers protocols.
    fn first(&mut self, asked: &Firebird) -> Result<Vec<u8>> {
        let srp = Srp::new()?;
        self.data = srp.public()?;
        self.srp = Some(srp);
        let mut outbox = Vec::new();
        self.connect(asked, &mut outbox);
        Ok(outbox)
    }

    fn hear(&mut self, inbox: &mut Inbox, asked: &Firebird) -> Result<Turn> {
        match inbox.next(&Format::default())? {
            Some(packet) => self.answer(packet, asked),
            None => Ok(Turn::Wait),
        }
    }

    /// Detaches from the database.
    fn farewell(&self) -> Vec<u8> {
        let mut outbox = Vec::new();
        self.detach(&mut outbox);
        outbox
    }

    fn auth(&self) -> String {
        self.plugin.to_string()
    }
}

impl Login {
    /// The next step after a packet. An error means that the login failed or was refused.
    fn answer(&mut self, packet: Packet<'_>, asked: &Firebird) -> Result<Turn> {
        let require = asked.wire_crypt == WireCrypt::Require;
        match (self.stage, packet) {
            (_, Packet::Response { failure: Some((code, failure)), .. }) => Err(refusal(code, failure, asked)),
            (Stage::Greeting, Packet::Reject) => {
                Err(Failure::connect("no common protocol version; Firebird 3 is the oldest supported server"))
            }
            (Stage::Greeting, Packet::Accept(accept)) => {
                self.protocol = accept.protocol;
                if accept.compressed {
                    return Err(Failure::connect("the server compresses, which was not requested"));
                }
                self.offered(accept.keys);
                self.challenged(accept.plugin, accept.data, asked)?;
                match (accept.conditional, require) {
                    (true, _) => Ok(self.prove()),
                    (false, false) => Ok(self.attach(asked, accept.authenticated)),
                    (false, true) => Err(Failure::tls("the server continued without the required wire encryption")),
                }
            }
            (Stage::Proving, Packet::Continue { plugin, data, keys }) => {
                self.offered(keys);
                self.challenged(plugin, data, asked)?;
                Ok(self.prove())
            }
            (Stage::Proving, Packet::Response { data, .. }) => {
                self.offered(data);
                if !require {
                    return Ok(self.attach(asked, true));
                }
                let (plugin, ciphers) = self.choose(asked)?;
                self.stage = Stage::Encrypting;
                let mut outbox = Vec::new();
                outbox.int(OP_CRYPT);
                outbox.bytes(plugin.as_bytes());
                outbox.bytes(b"Symmetric");
                Ok(Turn::Encrypt(outbox, ciphers))
            }
            (Stage::Encrypting, Packet::Response { .. }) => Ok(self.attach(asked, true)),
            (Stage::Attaching, Packet::Continue { plugin, data, .. }) => {
                self.challenged(plugin, data, asked)?;
                let turn = self.prove();
                self.stage = Stage::Attaching;
                Ok(turn)
            }
            (Stage::Attaching, Packet::Response { object, .. }) => {
                self.database = object;
                Ok(Turn::Ready)
            }
            (stage, packet) => {
                Err(Failure::connect(format!("unexpected response from the server ({packet:?} while {stage:?})")))
            }
        }
    }

    /// Detaches from the database. The server responds.
    pub fn detach(&self, outbox: &mut Vec<u8>) {
        outbox.int(OP_DETACH);
        outbox.int(self.database);
    }

    fn srp(&self) -> Result<&Srp> {
        self.srp.as_ref().ok_or_else(|| Failure::internal("a login that has not begun"))
    }

    fn connect(&self, asked: &Firebird, outbox: &mut Vec<u8>) {
        let level: i32 = if asked.wire_crypt == WireCrypt::Off { 0 } else { 2 };
        let mut user = Vec::new();
        clumplet(&mut user, 9, asked.user.as_bytes());
        clumplet(&mut user, 8, self.plugin.as_bytes());
        clumplet(&mut user, 10, LIST.as_bytes());
        // A clumplet holds at most 255 bytes: the key goes in numbered parts.
        for (number, part) in self.data.as_bytes().chunks(254).enumerate() {
            clumplet(&mut user, 7, &[&[number as u8], part].concat());
        }
        clumplet(&mut user, 11, &level.to_le_bytes());
        clumplet(&mut user, 1, b"ciphercost");
        clumplet(&mut user, 4, b"localhost");
        clumplet(&mut user, 6, b"");
        outbox.int(OP_CONNECT);
        outbox.int(OP_ATTACH);
        outbox.int(3); // version of this packet: strings are UTF-8
        outbox.int(GENERIC);
        outbox.bytes(asked.database.as_bytes());
        outbox.int(PROTOCOLS.count() as i32);
        outbox.bytes(&user);
        for version in PROTOCOLS {
            outbox.int(i32::from((0x8000 | version as u16) as i16));
            outbox.int(GENERIC);
            outbox.int(0);
            outbox.int(LAZY);
            outbox.int(2 * version);
        }
    }

    /// Handles the server's message for the plugin: a challenge, or a switch to another plugin.
    fn challenged(&mut self, plugin: &[u8], data: &[u8], asked: &Firebird) -> Result<()> {
        if !plugin.is_empty() && plugin != self.plugin.as_bytes() {
            let wanted = String::from_utf8_lossy(plugin);
            let known = PLUGINS.iter().find(|known| **known == wanted);
            self.plugin = known.ok_or_else(|| {
                Failure::connect(format!("the server asks for authentication by {wanted}; only {LIST} are known"))
            })?;
            self.named = false;
            self.data = self.srp()?.public()?;
        }
        if data.is_empty() {
            return Ok(());
        }
        if self.session_key.is_some() {
            return Err(Failure::connect("the server asked again after the response: the login failed"));
        }
        let broken = || Failure::connect("the server's challenge is truncated");
        let salt = counted(data).ok_or_else(broken)?;
        let key = counted(&data[2 + salt.len()..]).ok_or_else(broken)?;
        let password = asked
            .password
            .as_deref()
            .ok_or_else(|| Failure::connect("the server asks for a password and none was given"))?;
        let key = String::from_utf8_lossy(key);
        let answer = self.srp()?.answer(self.plugin, &name(&asked.user), password, salt, &key)?;
        self.data = answer.proof;
        self.session_key = Some(answer.session_key);
        Ok(())
    }

    /// Sends the plugin's message.
    fn prove(&mut self) -> Turn {
        let mut outbox = Vec::new();
        self.stage = Stage::Proving;
        outbox.int(OP_CONT_AUTH);
        outbox.bytes(self.data.as_bytes());
        outbox.bytes(self.plugin.as_bytes());
        outbox.bytes(if self.named { b"" } else { LIST.as_bytes() });
        outbox.bytes(b"");
        self.named = true;
        Turn::Send(outbox)
    }

    /// Attaches or creates the database. `logged_in`: already authenticated.
    fn attach(&mut self, asked: &Firebird, logged_in: bool) -> Turn {
        self.stage = Stage::Attaching;
        let (mut outbox, mut parameters) = (Vec::new(), vec![2]);
        let mut add = |tag: u8, value: &[u8]| {
            parameters.push(tag);
            parameters.extend_from_slice(&(value.len() as u32).to_le_bytes());
            parameters.extend_from_slice(value);
        };
        add(77, b""); // what follows is UTF-8
        add(48, b"UTF8");
        add(63, &3i32.to_le_bytes());
        add(28, asked.user.as_bytes());
        add(74, b"ciphercost-agent");
        if asked.create {
            add(68, b"UTF8");
            add(4, &PAGE_BYTES.to_le_bytes());
            add(24, &1i32.to_le_bytes());
            add(54, &0i32.to_le_bytes()); // never overwrite a file
        }
        if !logged_in {
            add(86, self.plugin.as_bytes());
            add(85, LIST.as_bytes());
            add(84, self.data.as_bytes());
        }
        outbox.int(if asked.create { OP_CREATE } else { OP_ATTACH });
        outbox.int(0);
        outbox.bytes(asked.database.as_bytes());
        outbox.bytes(&parameters);
        Turn::Send(outbox)
    }

    /// Encryption plugins of the server: items of tag, length and value.
    fn offered(&mut self, keys: &[u8]) {
        let mut rest = keys;
        while let [tag, length, after @ ..] = rest {
            let value = &after[..after.len().min(usize::from(*length))];
            match tag {
                1 => self.offers.plugins = String::from_utf8_lossy(value).into_owned(),
                3 => {
                    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
                    let name = String::from_utf8_lossy(&value[..end]).into_owned();
                    self.offers.specific.push((name, value.get(end + 1..).unwrap_or_default().to_vec()));
                }
                _ => {}
            }
            rest = &after[value.len()..];
        }
    }

    /// The first requested plugin that the server has. An error if there is none: required encryption never falls back.
    fn choose<'a>(&self, asked: &'a Firebird) -> Result<(&'a str, Ciphers)> {
        let theirs: Vec<&str> = self.offers.plugins.split_whitespace().collect();
        let wanted: Vec<&str> = asked.plugins().collect();
        let Some(plugin) = wanted.iter().find(|name| theirs.contains(name)) else {
            let offer = if theirs.is_empty() { "none".to_string() } else { theirs.join(", ") };
            return Err(Failure::tls(format!(
                "no common wire encryption plugin: requested {}, the server has {offer} (WireCryptPlugin in its firebird.conf)",
                wanted.join(", ")
            )));
        };
        let key = self.session_key.ok_or_else(|| Failure::tls("the login gave no session key"))?;
        let specific = self.offers.specific.iter().find(|(name, _)| name == plugin);
        let iv = specific.map(|(_, iv)| iv.as_slice()).unwrap_or_default();
        Ok((*plugin, Ciphers::new(plugin, &key, iv).map_err(Failure::tls)?))
    }
}

/// Explains a refused login, with advice if the reason is known. A server without encryption fails like one without TLS.
fn refusal(code: i32, failure: Failure, asked: &Firebird) -> Failure {
    match (code, asked.wire_crypt) {
        (errors::WIRE_CRYPT, WireCrypt::Require) => {
            Failure::tls(format!("{}. The server has wire encryption off (WireCrypt = Disabled)", failure.text))
        }
        (errors::WIRE_CRYPT, WireCrypt::Off) => {
            let text = format!("{}. The server requires wire encryption (WireCrypt = Required)", failure.text);
            Failure::new(&failure.code, text).lost()
        }
        _ => failure.lost(),
    }
}

fn clumplet(into: &mut Vec<u8>, tag: u8, value: &[u8]) {
    into.push(tag);
    into.push(value.len().min(255) as u8);
    into.extend_from_slice(&value[..value.len().min(255)]);
}

/// Bytes that begin with their length, little-endian.
fn counted(bytes: &[u8]) -> Option<&[u8]> {
    let length = usize::from(u16::from_le_bytes([*bytes.first()?, *bytes.get(1)?]));
    bytes.get(2..2 + length)
}

/// A user's name as the server stores it: upper case, unless quoted.
fn name(user: &str) -> String {
    match user.strip_prefix('"').and_then(|user| user.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => user.to_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(plugins: &str) -> Firebird {
        serde_json::from_value(serde_json::json!({
            "host": "h", "port": 3050, "user": "u", "password": "p", "database": "d", "wire_crypt": "require",
            "wire_crypt_plugins": plugins,
        }))
        .unwrap()
    }

    fn begun() -> Login {
        let mut login = Login::default();
        wire::Login::first(&mut login, &asked("")).unwrap();
        login
    }

    #[test]
    fn a_users_name_is_upper_case_unless_it_is_quoted() {
        assert_eq!(name("sysdba"), "SYSDBA");
        assert_eq!(name("\"Mixed\"\"Case\""), "Mixed\"Case");
    }

    #[test]
    fn the_first_plugin_that_both_have_is_chosen_with_its_nonce() {
        let mut login = Login { session_key: Some([1; 20]), ..Login::default() };
        let mut keys = Vec::new();
        clumplet(&mut keys, 0, b"Symmetric");
        clumplet(&mut keys, 1, b"ChaCha64 ChaCha");
        clumplet(&mut keys, 3, b"ChaCha64\x0012345678");
        clumplet(&mut keys, 3, b"ChaCha\x001234567890120000");
        login.offered(&keys);
        assert_eq!(login.choose(&asked("Arc4, ChaCha")).unwrap().0, "ChaCha");
        let (name, nonce) = &login.offers.specific[1];
        assert_eq!((name.as_str(), nonce.as_slice()), ("ChaCha", &b"1234567890120000"[..]));
        let Err(refused) = login.choose(&asked("Arc4")) else { panic!("chosen") };
        assert!(refused.code == "tls" && refused.text.contains("the server has ChaCha64, ChaCha"), "{refused}");
    }

    #[test]
    fn a_truncated_challenge_is_an_error() {
        for data in [&b"\x01"[..], b"\x05\0abc", b"\x01\0a", b"\x01\0a\x04\0FF"] {
            assert!(begun().challenged(b"Srp256", data, &asked("")).is_err(), "{data:?}");
        }
    }

    #[test]
    fn another_plugin_that_is_not_known_is_refused_by_name() {
        let refused = begun().challenged(b"Legacy_Auth", b"", &asked("")).unwrap_err();
        assert!(refused.text.contains("Legacy_Auth"), "{refused}");
    }
}
