//! The client's responses to any message of a server.

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
    extended(version, plugin, capabilities, 0)
}

/// The same with MariaDB's extensions, which count only without `LONG_PASSWORD`.
fn extended(version: &str, plugin: &str, capabilities: u32, extensions: u32) -> Vec<u8> {
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
        &[0; 6],
        &extensions.to_le_bytes(),
        &nonce,
        &plugin,
    ]
    .concat()
}

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..3], &[number], body].concat()
}

/// Logs in to a server that sends these bytes at once; returns what the server then receives.
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

/// Result of the login if the server sends this after the client's first packet, and how the login succeeded.
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
fn mariadb_is_asked_to_describe_columns_only_once() {
    for (capabilities, extensions, wanted) in
        [(NEEDED, 0x1c, true), (NEEDED | LONG_PASSWORD, 0x1c, false), (NEEDED, 0x0c, false)]
    {
        let bytes = packet(0, &extended("11.8.6-MariaDB", NATIVE, capabilities, extensions));
        let (step, mut login, _) = greeted(&bytes, &here("p"));
        step.unwrap();
        let first = login.first(&here("p")).unwrap();
        assert_eq!(first[HEADER_BYTES] & 1, u8::from(!wanted));
        assert_eq!(first[HEADER_BYTES + 28..HEADER_BYTES + 32], if wanted { [16, 0, 0, 0] } else { [0; 4] });
        let mut inbox = Answers::default();
        let bytes = packet(login.number, LET_IN);
        let fill = |into: &mut [u8]| {
            into[..bytes.len()].copy_from_slice(&bytes);
            Ok(bytes.len())
        };
        inbox.buffer().fill(fill).unwrap();
        assert!(matches!(login.hear(&mut inbox, &here("p")), Ok(Turn::Ready)));
        assert_eq!(inbox.says_if_described, wanted);
    }
}

#[test]
fn after_the_greeting_tls_is_requested_before_anything_else() {
    let bytes = packet(0, &greeting("9.7.4", CACHING_SHA2, NEEDED | SSL));
    let (step, login, heard) = greeted(&bytes, &asked(r#""host":"127.0.0.1","tls":"require","password":"p""#));
    assert_eq!(step.unwrap(), Step::Done);
    assert_eq!((login.server_version().as_str(), login.nonce.as_slice()), ("9.7.4", &NONCE[..]));
    assert_eq!((heard.len(), heard[3], heard[5] & 8), (36, 1, 8), "{heard:?}");
    let (step, _, heard) = greeted(&bytes, &here("p"));
    assert_eq!((step.unwrap(), heard.len()), (Step::Done, 0));
}

#[test]
fn an_unusable_greeting_is_a_clear_error() {
    let tls = asked(r#""host":"127.0.0.1","tls":"require""#);
    let refused = |said: &[u8], asked: &Server| {
        let (step, _, heard) = greeted(said, asked);
        assert!(heard.is_empty(), "nothing may be said to it");
        step.unwrap_err()
    };
    let good = packet(0, &greeting("9.7.4", CACHING_SHA2, NEEDED | SSL));
    let no_tls = packet(0, &greeting("9.7.4", CACHING_SHA2, NEEDED));
    assert_eq!(refused(&no_tls, &tls).code, "tls");
    // Unencrypted bytes that follow don't come from the server that TLS will authenticate.
    assert_eq!(refused(&[&good[..], b"x"].concat(), &tls).code, "tls");
    assert_eq!(refused(&[&good[..], b"x"].concat(), &here("")).code, "connect");
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
    // The client requests the key; a malformed key gets nothing, and neither does one that was not requested.
    let (sent, refused) = after(CACHING_SHA2, &here("p"), &[b"\x01\x04", b"\x01garbage"]);
    assert_eq!((sent.len(), sent[1].as_slice()), (2, &b"\x02"[..]));
    assert!(refused.unwrap_err().text.contains("public key"));
    let key = openssl::rsa::Rsa::generate(2048).unwrap();
    let pem = [b"\x01", &key.public_key_to_pem().unwrap()[..]].concat();
    let (sent, let_in) = after(CACHING_SHA2, &here("p"), &[b"\x01\x04", &pem, LET_IN]);
    assert_eq!((sent[2].len(), let_in.unwrap().as_str()), (256, "caching_sha2_password full (RSA)"));
    // MySQL takes a Unix socket for secure: it reads the password itself, and no request for the key.
    let local = asked(r#""host":"10.0.0.1","password":"p","socket":"/s""#);
    let (sent, let_in) = after(CACHING_SHA2, &local, &[b"\x01\x04", LET_IN]);
    assert_eq!((sent[1].as_slice(), let_in.unwrap().as_str()), (&b"p\0"[..], "caching_sha2_password full (socket)"));
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
    let (sent, let_in) = after(NATIVE, &here("p"), &[&switch(PARSEC, &[9; 32]), b"P\0eighteen bytes: ok", LET_IN]);
    assert_eq!((sent[1].len(), sent[2].len(), let_in.unwrap().as_str()), (0, 32 + 64, PARSEC));
    for plugin in [CLEAR, "auth_gssapi_client", "dialog"] {
        let (sent, refused) = after(NATIVE, &here("p"), &[&switch(plugin, b"")]);
        assert_eq!(sent.len(), 1);
        assert!(refused.unwrap_err().text.contains(plugin));
    }
    for mode in [Tls::VerifyCa, Tls::VerifyFull] {
        let verified = Server { tls: mode, ..here("p") };
        let (sent, let_in) = after(NATIVE, &verified, &[&switch(CLEAR, b""), LET_IN]);
        assert_eq!((sent[1].as_slice(), let_in.unwrap().as_str()), (&b"p\0"[..], CLEAR));
    }
    let (sent, refused) = after(NATIVE, &tls, &[&switch(CLEAR, b""), LET_IN]);
    assert_eq!(sent.len(), 1, "encrypted, but anybody could be the server");
    assert!(refused.unwrap_err().text.contains("refused without a verified server"));
    // The plaintext password is never the first message, whatever the greeting asks for.
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
fn no_server_message_panics() {
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
            // Our own packets have the numbers in between.
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

// ── a self-signed certificate ─────────────────────────────────────────────────────────────────────────────────────────

const AUTOMATIC: u32 = NEEDED | SSL;

/// Result of the login, over TLS with a self-signed certificate, to a server of this version, if it sends this after the client's
/// first packet; and whether it has proven the certificate.
fn with_certificate(version: &str, asked: &Server, said: &[&[u8]]) -> Result<bool> {
    let (step, mut login, _) = greeted(&packet(0, &greeting(version, NATIVE, AUTOMATIC)), asked);
    step.unwrap();
    login.must_prove(SelfSigned { subject: "CN=MariaDB Server".into(), fingerprint: [7; 32] });
    login.first(asked)?;
    let mut inbox = Answers::default();
    inbox.clear();
    let mut number = login.number;
    for body in said {
        let bytes = packet(number, body);
        inbox.buffer().fill(|into| {
            into[..bytes.len()].copy_from_slice(&bytes);
            Ok(bytes.len())
        })?;
        number = number.wrapping_add(2);
        login.hear(&mut inbox, asked)?;
    }
    Ok(login.verified_by().is_some())
}

/// OK with the proof of a certificate with this fingerprint, by what the server stores of the password.
fn proof(stored: &[u8], fingerprint: [u8; 32]) -> Vec<u8> {
    let hash = sha256(&[stored, NONCE, &fingerprint].concat());
    let hex: String = hash.iter().map(|byte| format!("{byte:02X}")).collect();
    [b"\0\0\0\x02\0\0\0\x41\x01", hex.as_bytes()].concat()
}

fn over_tls(password: &str) -> Server {
    asked(&format!(r#""host":"127.0.0.1","password":"{password}","tls":"verify-full""#))
}

const NEW: &str = "11.8.2-MariaDB";

#[test]
fn the_password_proves_a_self_signed_certificate() {
    let native = scramble::native_stored(b"secret");
    let asked = over_tls("secret");
    assert!(with_certificate(NEW, &asked, &[&proof(&native, [7; 32])]).unwrap());
    let to = [b"\xfeclient_ed25519\0", &[9; 32][..]].concat();
    let ed25519 = scramble::ed25519_stored(b"secret");
    assert!(with_certificate(NEW, &asked, &[&to, &proof(&ed25519, [7; 32])]).unwrap());
}

#[test]
fn a_man_in_the_middle_proves_nothing() {
    let native = scramble::native_stored(b"secret");
    let cut = &proof(&native, [7; 32])[..60];
    for said in [
        &proof(&native, [8; 32])[..],
        &proof(&scramble::native_stored(b"guessed"), [7; 32]),
        &proof(&[], [7; 32]),
        b"\0\0\0\x02\0\0\0",
        b"\0\0\0\x02\0\0\0\0",
        b"\0\0\0\x02\0\0\0\x01\x01",
        cut,
        b"\xfemysql_clear_password\0",
        b"\xfecaching_sha2_password\0abcdefghijklmnopqrst\0",
        b"\xfesha256_password\0abcdefghijklmnopqrst\0",
        b"\xfedialog\0\x04Password: ",
    ] {
        let failure = with_certificate(NEW, &over_tls("secret"), &[said]).unwrap_err();
        assert_eq!(failure.code, "tls", "{said:?}");
        assert!(failure.text.contains("the server's certificate (CN=MariaDB Server)"), "{failure}");
    }
}

#[test]
fn what_could_not_be_proven_gets_no_login() {
    for (version, password) in [(NEW, ""), ("9.7.4", "secret")] {
        let failure = with_certificate(version, &over_tls(password), &[]).unwrap_err();
        assert_eq!(failure.code, "tls");
    }
}
