//! TLS sessions that enforce what was requested, with the negotiated facts and clear error messages.

use super::naming::{group_name, key_name, named_as, names, subject};
use super::self_signed::{self, SelfSigned};
use super::sessions::Sessions;
use super::socket::Socket;
use crate::failure::{Failure, Result};
use crate::message::{Server, Tls, TlsVersion};
use foreign_types_shared::ForeignTypeRef;
use openssl::error::ErrorStack;
use openssl::pkey::PKey;
use openssl::ssl::{
    ErrorCode, Ssl, SslContext, SslContextBuilder, SslFiletype, SslMethod, SslMode, SslRef, SslSessionCacheMode,
    SslStream, SslVerifyMode, SslVersion,
};
use openssl::x509::verify::X509VerifyFlags;
use openssl::x509::{X509, X509VerifyResult};
use std::cell::Cell;
use std::ffi::CStr;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// How an arm's connections are encrypted.
pub struct TlsClient {
    context: SslContext,
    /// The name that the certificate must have (for verify-full), which is also sent to the server.
    name: String,
    verify_name: bool,
    verify_chain: bool,
    /// Whether the login verifies a self-signed certificate.
    login_proves: bool,
    /// The TLS versions that it offers, for messages: "1.2 or 1.3".
    versions: String,
    /// The protocol that the server must agree to speak.
    application: Option<Application>,
    /// What to add where the server hangs up: it may not know the way in which TLS begins.
    if_closed: &'static str,
    pub sessions: Option<Arc<Sessions>>,
    /// Whether requests may go before the handshake is complete.
    pub early_data: bool,
}

/// A protocol under TLS, by its name in ALPN.
#[derive(Debug, Clone, Copy)]
pub struct Application {
    pub name: &'static str,
    /// Whether a server that does not agree is refused.
    pub must_agree: bool,
}

const TOO_OLD: &str = "; PostgreSQL takes TLS without being asked for it from version 17 on";
const HIGHEST_SECURITY_LEVEL: u8 = 5;

impl TlsClient {
    /// None if the arm is unencrypted. `crowd`: idle connections hold no buffers, and get them back for each record.
    /// `application`: the protocol that is offered to the server, by ALPN.
    pub fn offering(asked: &Server, crowd: bool, application: Option<Application>) -> Result<Option<TlsClient>> {
        if asked.tls == Tls::Off {
            return Ok(None);
        }
        let bad = |what: &'static str| move |error: ErrorStack| Failure::tls(format!("{what}: {}", reason(&error)));
        let mut builder = SslContextBuilder::new(SslMethod::tls_client()).map_err(bad("no TLS"))?;
        // Set first: it applies to certificates and ciphers when they are set.
        if let Some(level) = asked.tls_security_level {
            if level > HIGHEST_SECURITY_LEVEL {
                return Err(Failure::bad_message("tls_security_level: must be 0 to 5"));
            }
            builder.set_security_level(level.into());
        }
        let mut max = asked.tls_max.unwrap_or(TlsVersion::V13);
        let mut min = asked.tls_min.unwrap_or(if max < TlsVersion::V12 { max } else { TlsVersion::V12 });
        if let Some(ciphers) = &asked.tls_ciphers {
            let (new, old): (Vec<&str>, Vec<&str>) = ciphers.split(':').partition(|name| name.starts_with("TLS_"));
            // Ciphers of only one version exclude the other version, whose defaults were not requested.
            if old.is_empty() {
                min = TlsVersion::V13;
            } else {
                builder.set_cipher_list(&old.join(":")).map_err(bad("tls_ciphers"))?;
            }
            if new.is_empty() {
                max = if max < TlsVersion::V12 { max } else { TlsVersion::V12 };
            } else {
                builder.set_ciphersuites(&new.join(":")).map_err(bad("tls_ciphers"))?;
            }
        }
        if min > max {
            return Err(Failure::tls("tls_min, tls_max and tls_ciphers leave no version of TLS"));
        }
        builder.set_min_proto_version(Some(version(min))).map_err(bad("tls_min"))?;
        builder.set_max_proto_version(Some(version(max))).map_err(bad("tls_max"))?;
        if let Some(groups) = &asked.tls_groups {
            builder.set_groups_list(groups).map_err(bad("tls_groups"))?;
        }
        match (&asked.tls_certificate, &asked.tls_key, asked.tls_identity.0.as_str()) {
            (None, None, "") => {}
            (None, None, identity) => show_text(&mut builder, identity)?,
            (Some(certificate), Some(key), "") => show(&mut builder, certificate, key)?,
            (Some(_), Some(_), _) => {
                return Err(Failure::bad_message("tls_identity takes the place of tls_certificate and tls_key"));
            }
            _ => return Err(Failure::bad_message("tls_certificate and tls_key: give both or neither")),
        }
        let verify_chain = matches!(asked.tls, Tls::VerifyCa | Tls::VerifyFull);
        if verify_chain {
            let login_proves = asked.login_proves;
            builder.set_verify_callback(SslVerifyMode::PEER, move |good, chain| {
                if login_proves && !good && self_signed::is_left_to_login(chain.error()) {
                    return true;
                }
                // OpenSSL forgets a certificate that it refuses: keep its names for the error's text.
                if let (false, Some(certificate)) = (good, chain.current_cert()) {
                    REFUSED.set(Some((subject(certificate), names(certificate))));
                }
                good
            });
            match asked.tls_ca.clone().or_else(system_authorities) {
                Some(ca) => {
                    let file = |error: ErrorStack| Failure::tls(format!("--ca {ca}: {}", reason(&error)));
                    builder.set_ca_file(&ca).map_err(file)?;
                    if holds_revocation_lists(&ca) {
                        builder.verify_param_mut().set_flags(X509VerifyFlags::CRL_CHECK).map_err(bad("tls_ca"))?;
                    }
                }
                None if login_proves => {}
                None => {
                    let text = "no certificate authorities of the system were found; give a PEM file as --ca";
                    return Err(Failure::tls(text));
                }
            }
        } else {
            builder.set_verify(SslVerifyMode::NONE);
        }
        // One `recv` then gets as much as the buffer holds, which is the longest record; otherwise OpenSSL reads each record's
        // header and body separately. More would be moved at each record that is read out of it.
        builder.set_read_ahead(true);
        // What waits for room in the socket is offered again, with more behind it, from wherever it has moved to.
        builder.set_mode(SslMode::ACCEPT_MOVING_WRITE_BUFFER);
        if crowd {
            builder.set_mode(SslMode::RELEASE_BUFFERS);
        }
        if let Some(Application { name, .. }) = application {
            let offer = [&[name.len() as u8], name.as_bytes()].concat();
            builder.set_alpn_protos(&offer).map_err(bad("ALPN"))?;
        }
        let sessions = asked.resumption.then(|| Arc::new(Sessions::new(asked.early_data)));
        if let Some(sessions) = sessions.clone() {
            builder.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
            builder.set_new_session_callback(move |_, new| sessions.keep(new));
        } else {
            builder.set_session_cache_mode(SslSessionCacheMode::OFF);
        }
        Ok(Some(TlsClient {
            context: builder.build(),
            name: asked.tls_server_name.clone().unwrap_or_else(|| asked.host.clone()),
            verify_name: asked.tls == Tls::VerifyFull,
            verify_chain,
            login_proves: asked.login_proves,
            versions: if min == max { named(max).into() } else { format!("{} to {}", named(min), named(max)) },
            if_closed: if asked.tls_at_once { TOO_OLD } else { "" },
            application: application.filter(|application| application.must_agree),
            sessions,
            early_data: asked.early_data,
        }))
    }

    /// A session that is ready to shake hands on this socket.
    pub fn start(&self, socket: Socket) -> Result<SslStream<Socket>> {
        SslStream::new(self.session()?, socket)
            .map_err(|error| Failure::tls(format!("TLS cannot start: {}", reason(&error))))
    }

    /// A session that is ready to shake hands: it asks for the server's name, and resumes an earlier session if there is one.
    pub fn session(&self) -> Result<Ssl> {
        let begin = || -> std::result::Result<Ssl, ErrorStack> {
            let mut ssl = Ssl::new(&self.context)?;
            match self.name.parse::<IpAddr>() {
                Ok(ip) if self.verify_name => ssl.param_mut().set_ip(ip)?,
                Ok(_) => {}
                Err(_) => {
                    ssl.set_hostname(&self.name)?;
                    if self.verify_name {
                        ssl.param_mut().set_host(&self.name)?;
                    }
                }
            }
            if let Some(session) = self.sessions.as_ref().map_or(Ok(None), |sessions| sessions.take())? {
                // SAFETY: this very context made the session.
                unsafe { ssl.set_session(&session)? };
            }
            Ok(ssl)
        };
        begin().map_err(|error| Failure::tls(format!("TLS cannot start: {}", reason(&error))))
    }

    /// Continues the handshake. `false`: the peer's part has not arrived yet.
    pub fn shake_hands(&self, stream: &mut SslStream<Socket>) -> Result<bool> {
        loop {
            self_signed::begin();
            match stream.connect() {
                Ok(()) => {
                    if let Some(sessions) = &self.sessions {
                        sessions.keep_renewed(stream.ssl());
                    }
                    return self.agreed(stream.ssl()).map(|()| true);
                }
                Err(error) if error.code() == ErrorCode::WANT_READ => return Ok(false),
                Err(error) if error.code() == ErrorCode::WANT_WRITE => stream.get_ref().wait(libc::POLLOUT)?,
                Err(error) => return Err(self.refusal(stream.ssl(), error.ssl_error(), error.io_error())),
            }
        }
    }

    /// Checks that the server speaks the protocol that it must.
    pub fn agreed(&self, ssl: &SslRef) -> Result<()> {
        match self.application {
            Some(wanted) if ssl.selected_alpn_protocol() != Some(wanted.name.as_bytes()) => {
                Err(Failure::tls(format!("the server did not agree, by ALPN, to speak {}", wanted.name)))
            }
            _ => Ok(()),
        }
    }

    /// Describes a failed handshake.
    pub fn refusal(&self, ssl: &SslRef, stack: Option<&ErrorStack>, io: Option<&std::io::Error>) -> Failure {
        let verdict = ssl.verify_result();
        if self.verify_chain && verdict != X509VerifyResult::OK {
            let (subject, names) = REFUSED.take().unwrap_or_default();
            return Failure::tls(rejected(&subject, &issued(ssl), verdict, &names, &self.name));
        }
        match stack {
            Some(stack) if has_reason(stack, &[WRONG_VERSION_NUMBER, PACKET_LENGTH_TOO_LONG, HTTP_REQUEST]) => {
                Failure::tls("the server does not speak TLS on this port (its answer was not encrypted)")
            }
            Some(stack) if has_reason(stack, &[UNSUPPORTED_PROTOCOL, WRONG_SSL_VERSION, ALERT_PROTOCOL_VERSION]) => {
                Failure::tls(format!("the server does not accept TLS version {}", self.versions))
            }
            Some(stack) if has_reason(stack, &[ALERT_NO_APPLICATION_PROTOCOL]) => {
                Failure::tls("the server does not speak the protocol offered by ALPN")
            }
            Some(stack) => {
                let text = about_ours(stack).unwrap_or_else(|| format!("TLS handshake failed: {}", reason(stack)));
                Failure::tls(text)
            }
            None => match io {
                Some(io) => Failure::tls(format!("TLS handshake failed: {io}{}", self.if_closed)),
                None => {
                    Failure::tls(format!("TLS handshake failed: the server closed the connection{}", self.if_closed))
                }
            },
        }
    }

    /// The certificate that the login must verify: one that is signed by no authority.
    pub fn to_be_proven(&self, ssl: &SslRef) -> Result<Option<SelfSigned>> {
        if !self.login_proves || ssl.verify_result() == X509VerifyResult::OK {
            return Ok(None);
        }
        let certificate = ssl.peer_certificate().ok_or_else(|| Failure::tls("the server has no certificate"))?;
        SelfSigned::of(&certificate, subject(&certificate)).map(Some)
    }

    pub fn facts(&self, ssl: &SslRef) -> Facts {
        // SAFETY: the session is valid, and the returned name is a static string or null.
        let group = unsafe {
            let name = openssl_sys::SSL_get0_group_name(ssl.as_ptr());
            if name.is_null() { String::new() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
        };
        Facts {
            protocol: ssl.version_str().to_string(),
            cipher: ssl.current_cipher().map(|cipher| cipher.name().to_string()).unwrap_or_default(),
            group: group_name(&group),
            resumed: ssl.session_reused(),
            verified_by: if self.verify_chain && ssl.verify_result() == X509VerifyResult::OK {
                "certificate"
            } else {
                ""
            },
            application: ssl
                .selected_alpn_protocol()
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .unwrap_or_default(),
            peer: ssl.peer_certificate().map(|certificate| subject(&certificate)).unwrap_or_default(),
            peer_key: ssl
                .peer_certificate()
                .and_then(|certificate| certificate.public_key().ok())
                .map(|key| key_name(&key))
                .unwrap_or_default(),
        }
    }
}

/// Loads the client's own certificate and key, for a server that requests them.
fn show(builder: &mut SslContextBuilder, certificate: &str, key: &str) -> Result<()> {
    let file = |name: &'static str, path: &str| {
        let path = path.to_string();
        move |error: ErrorStack| Failure::tls(format!("{name} {path}: {}", reason(&error)))
    };
    builder.set_certificate_chain_file(certificate).map_err(file("tls_certificate", certificate))?;
    builder.set_private_key_file(key, SslFiletype::PEM).map_err(file("tls_key", key))?;
    builder.check_private_key().map_err(file("tls_key", key))
}

/// The same from one PEM text. An error's text shows nothing of it.
fn show_text(builder: &mut SslContextBuilder, identity: &str) -> Result<()> {
    let bad = |error: ErrorStack| Failure::tls(format!("tls_identity: {}", reason(&error)));
    let mut chain = X509::stack_from_pem(identity.as_bytes()).map_err(bad)?.into_iter();
    let own = chain.next().ok_or_else(|| Failure::bad_message("tls_identity: holds no certificate"))?;
    builder.set_certificate(&own).map_err(bad)?;
    for above in chain {
        builder.add_extra_chain_cert(above).map_err(bad)?;
    }
    let key = PKey::private_key_from_pem(identity.as_bytes()).map_err(bad)?;
    builder.set_private_key(&key).map_err(bad)?;
    builder.check_private_key().map_err(bad)
}

/// What was negotiated on one connection.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub protocol: String,
    pub cipher: String,
    pub group: String,
    pub resumed: bool,
    /// `certificate`, `password`, or empty.
    pub verified_by: &'static str,
    /// What the server agreed to speak, by ALPN; empty: nothing was offered, or it did not say.
    pub application: String,
    pub peer: String,
    pub peer_key: String,
}

pub fn library() -> String {
    openssl::version::version().to_string()
}

fn named(version: TlsVersion) -> &'static str {
    match version {
        TlsVersion::V10 => "1.0",
        TlsVersion::V11 => "1.1",
        TlsVersion::V12 => "1.2",
        TlsVersion::V13 => "1.3",
    }
}

fn version(version: TlsVersion) -> SslVersion {
    match version {
        TlsVersion::V10 => SslVersion::TLS1,
        TlsVersion::V11 => SslVersion::TLS1_1,
        TlsVersion::V12 => SslVersion::TLS1_2,
        TlsVersion::V13 => SslVersion::TLS1_3,
    }
}

/// OpenSSL's errors for bytes that aren't TLS records.
const WRONG_VERSION_NUMBER: i32 = 267;
const PACKET_LENGTH_TOO_LONG: i32 = 198;
const HTTP_REQUEST: i32 = 156;
const ALERT_NO_APPLICATION_PROTOCOL: i32 = 1120;
/// In TLS 1.3 it comes after the handshake, which is over for the client when it has sent no certificate.
const ALERT_CERTIFICATE_REQUIRED: i32 = 1116;
const CLIENT_CERTIFICATE: &str = "the server asks for a client certificate";
/// Alerts with which a server refuses the client's certificate.
const REFUSALS: [(i32, &str); 7] = [
    (1042, "bad certificate"),
    (1043, "unsupported certificate: it may not be for clients (extended key usage)"),
    (1044, "it has been revoked"),
    (1045, "it has expired"),
    (1046, "certificate unknown"),
    (1048, "the server does not know the authority that signed it"),
    (1049, "access denied"),
];

/// What a server's alert says of the client's certificate; none: it is about something else.
pub fn about_ours(stack: &ErrorStack) -> Option<String> {
    if has_reason(stack, &[ALERT_CERTIFICATE_REQUIRED]) {
        return Some(CLIENT_CERTIFICATE.to_string());
    }
    let (_, why) = REFUSALS.iter().find(|(code, _)| has_reason(stack, &[*code]))?;
    Some(format!("the server refused the client certificate: {why}"))
}

/// OpenSSL's errors if client and server have no TLS version in common.
const UNSUPPORTED_PROTOCOL: i32 = 258;
const WRONG_SSL_VERSION: i32 = 266;
const ALERT_PROTOCOL_VERSION: i32 = 1070;

/// Subject and issuer of the certificate that the server presented as its own.
fn issued(ssl: &SslRef) -> String {
    let own = ssl.peer_cert_chain().and_then(|chain| chain.get(0));
    own.map_or_else(String::new, |own| format!("subject {}, issuer {}", subject(own), named_as(own.issuer_name())))
}

/// Why a certificate was rejected. `subject`, `names`: its own; `issued`: subject and issuer of the server's, which may be another
/// one; `wanted`: the name that it should have.
fn rejected(subject: &str, issued: &str, verdict: X509VerifyResult, names: &str, wanted: &str) -> String {
    let certificate = format!("the server's certificate ({subject})");
    match verdict.as_raw() {
        3 => format!("--ca has no revocation list of the authority that signed {certificate}; add its CRL"),
        9 => format!("{certificate} is not valid yet"),
        10 => format!("{certificate} has expired"),
        11 | 12 => "the revocation list (CRL) in --ca is out of date; get the newest one".to_string(),
        2 | 18 | 19 | 20 | 21 | 27 => {
            let both = if issued.is_empty() { subject } else { issued };
            format!("the server's certificate ({both}) is signed by an unknown authority; name that with --ca")
        }
        23 => format!("{certificate} has been revoked"),
        // The refused certificate is the one above the server's.
        24 | 32 | 79 => format!("the server's certificate is signed by one ({subject}) that is no authority"),
        26 => format!("{certificate} is not for servers (extended key usage)"),
        62 | 64 => format!("name mismatch: {certificate} is for {names}, not for {wanted}"),
        _ => format!("{certificate} was refused: {}", verdict.error_string()),
    }
}

/// Whether this PEM file of authorities also holds revocation lists, against which the server's certificate is then checked.
fn holds_revocation_lists(path: &str) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN X509 CRL-----";
    std::fs::read(path).is_ok_and(|pem| pem.windows(BEGIN.len()).any(|part| part == BEGIN))
}

pub fn has_reason(stack: &ErrorStack, codes: &[i32]) -> bool {
    stack.errors().iter().any(|error| codes.contains(&error.reason_code()))
}

/// OpenSSL's own text, without the file and line of its source.
fn reason(stack: &ErrorStack) -> String {
    let reasons: Vec<&str> = stack.errors().iter().filter_map(|error| error.reason()).collect();
    if reasons.is_empty() { "unknown reason".to_string() } else { reasons.join("; ") }
}

/// This system's file of certificate authorities: the vendored OpenSSL knows no path.
fn system_authorities() -> Option<String> {
    const USUAL: [&str; 4] = [
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ];
    let named = std::env::var("SSL_CERT_FILE").ok();
    named.into_iter().chain(USUAL.map(String::from)).find(|path| Path::new(path).is_file())
}

thread_local! {
    /// Subject and names of the last certificate that this thread refused.
    static REFUSED: Cell<Option<(String, String)>> = const { Cell::new(None) };
}
