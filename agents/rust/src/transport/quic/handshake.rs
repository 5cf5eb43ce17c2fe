//! QUIC's handshake (RFC 9001, 4): TLS 1.3 of the agent's own OpenSSL, whose messages travel in QUIC's packets.

use super::keys::{self, Secrets, Suite};
use super::parameters::without_reserved;
use crate::failure::Failure;
use crate::transport::tls::TlsClient;
use foreign_types_shared::ForeignTypeRef;
use openssl::error::ErrorStack;
use openssl::ssl::Ssl;
use openssl_sys::{SSL, SSL_CIPHER, SSL_SESSION};
use quinn_proto::crypto::{ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use std::any::Any;
use std::collections::VecDeque;
use std::ffi::{c_int, c_uchar, c_void};
use std::io::Cursor;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// TLS's encryption levels, as OpenSSL numbers them.
const LEVELS: usize = 4;
/// TLS's alert for an error of our own.
const INTERNAL_ERROR: u8 = 80;
/// The level of what a client sends before the handshake is complete.
const EARLY: u32 = 1;
/// OpenSSL's `SSL_EARLY_DATA_ACCEPTED`.
const EARLY_DATA_ACCEPTED: c_int = 2;

/// How an arm's connections shake hands.
pub struct Shake {
    tls: Arc<TlsClient>,
    /// The server's transport parameters, from its last handshake: what is sent before the next one is complete must respect them.
    remembered: Arc<Mutex<Vec<u8>>>,
}

impl Shake {
    pub fn new(tls: TlsClient) -> Shake {
        Shake { tls: Arc::new(tls), remembered: Arc::default() }
    }
}

impl ClientConfig for Shake {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Handshake::start(&self, parameters)
            .map(|handshake| Box::new(handshake) as Box<dyn Session>)
            .map_err(|failure| ConnectError::InvalidServerName(failure.text))
    }
}

fn locked(remembered: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    remembered.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What OpenSSL hands over, and what it takes. Its address never changes: OpenSSL keeps it.
#[derive(Default)]
struct Exchange {
    /// Messages for OpenSSL. It holds on to a part of the first until it has read that.
    heard: VecDeque<Vec<u8>>,
    read: usize,
    /// Messages and keys for the peer's packets, in their order.
    said: VecDeque<Said>,
    /// Secrets by encryption level: ours, the peer's.
    secrets: [(Vec<u8>, Vec<u8>); LEVELS],
    ours: Vec<u8>,
    parameters: Vec<u8>,
    alert: Option<u8>,
    /// The keys' suite and secret of what is sent before the handshake is complete.
    early: Option<(Suite, Vec<u8>)>,
}

enum Said {
    Message(Vec<u8>),
    Keys(Secrets),
}

/// The exchange, by the same pointer that OpenSSL has. Between our calls of OpenSSL nobody else follows that.
struct Shared(*mut Exchange);

impl Shared {
    fn new(exchange: Exchange) -> Shared {
        Shared(Box::into_raw(Box::new(exchange)))
    }

    fn get(&self) -> &Exchange {
        // SAFETY: the pointer is a box's, and lives as long as `self`.
        unsafe { &*self.0 }
    }

    fn get_mut(&mut self) -> &mut Exchange {
        // SAFETY: the same.
        unsafe { &mut *self.0 }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the pointer is a box's, and nobody has freed it.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// One connection's handshake.
struct Handshake {
    tls: Arc<TlsClient>,
    remembered: Arc<Mutex<Vec<u8>>>,
    /// Freed before what it points to.
    ssl: Ssl,
    exchange: Shared,
    complete: bool,
    /// The secrets of the application's packets, for the next generation of keys.
    latest: Option<Secrets>,
}

// SAFETY: `exchange` is reached only through `&mut self` and, within such a call, by OpenSSL.
unsafe impl Send for Handshake {}
// SAFETY: `&self` reads the session and its own fields; nothing there changes them.
unsafe impl Sync for Handshake {}

/// OpenSSL's `OSSL_DISPATCH`.
#[repr(C)]
struct Dispatch {
    function: c_int,
    call: *const c_void,
}

unsafe extern "C" {
    fn SSL_set_quic_tls_cbs(ssl: *mut SSL, dispatch: *const Dispatch, argument: *mut c_void) -> c_int;
    fn SSL_set_quic_tls_transport_params(ssl: *mut SSL, bytes: *const c_uchar, length: usize) -> c_int;
    fn SSL_set_quic_tls_early_data_enabled(ssl: *mut SSL, enabled: c_int) -> c_int;
    fn SSL_get_early_data_status(ssl: *const SSL) -> c_int;
    fn SSL_get_pending_cipher(ssl: *const SSL) -> *const SSL_CIPHER;
    fn SSL_SESSION_get0_cipher(session: *const SSL_SESSION) -> *const SSL_CIPHER;
}

impl Handshake {
    fn start(shake: &Shake, parameters: &TransportParameters) -> Result<Handshake, Failure> {
        let (tls, remembered) = (shake.tls.clone(), shake.remembered.clone());
        let ssl = tls.session()?;
        let mut written = Vec::new();
        parameters.write(&mut written);
        let exchange = Shared::new(Exchange { ours: without_reserved(&written), ..Exchange::default() });
        let calls = [
            Dispatch { function: 2001, call: say as *const c_void },
            Dispatch { function: 2002, call: hear as *const c_void },
            Dispatch { function: 2003, call: heard as *const c_void },
            Dispatch { function: 2004, call: take_secret as *const c_void },
            Dispatch { function: 2005, call: take_parameters as *const c_void },
            Dispatch { function: 2006, call: take_alert as *const c_void },
            Dispatch { function: 0, call: std::ptr::null() },
        ];
        let ours = &exchange.get().ours;
        // SAFETY: OpenSSL copies the calls; `exchange` lives longer than the session, and its parameters don't change.
        let ready = unsafe {
            SSL_set_quic_tls_cbs(ssl.as_ptr(), calls.as_ptr(), exchange.0.cast()) == 1
                && SSL_set_quic_tls_transport_params(ssl.as_ptr(), ours.as_ptr(), ours.len()) == 1
        };
        if !ready {
            return Err(Failure::tls(format!("QUIC cannot start: {}", ErrorStack::get())));
        }
        // SAFETY: the session is valid.
        unsafe { openssl_sys::SSL_set_connect_state(ssl.as_ptr()) };
        if tls.early_data && !locked(&remembered).is_empty() {
            // SAFETY: the session is valid. It refuses, without harm, if there is no earlier session that allows it.
            unsafe { SSL_set_quic_tls_early_data_enabled(ssl.as_ptr(), 1) };
        }
        let mut handshake = Handshake { tls, remembered, ssl, exchange, complete: false, latest: None };
        handshake.go_on()?;
        Ok(handshake)
    }

    /// Lets OpenSSL read what has arrived, and say what follows.
    fn go_on(&mut self) -> Result<(), Failure> {
        ErrorStack::get();
        // SAFETY: the session is valid; reading nothing makes it handle messages after the handshake.
        let (result, code) = unsafe {
            let result = match self.complete {
                false => openssl_sys::SSL_do_handshake(self.ssl.as_ptr()),
                true => openssl_sys::SSL_read(self.ssl.as_ptr(), std::ptr::null_mut(), 0),
            };
            (result, openssl_sys::SSL_get_error(self.ssl.as_ptr(), result))
        };
        if result > 0 {
            if !self.complete {
                self.complete = true;
                self.tls.agreed(&self.ssl)?;
                if self.tls.early_data {
                    locked(&self.remembered).clone_from(&self.exchange.get().parameters);
                }
                if self.exchange.get().early.is_some() && self.early_data_accepted() == Some(false) {
                    if let Some(sessions) = &self.tls.sessions {
                        sessions.forget();
                    }
                }
            }
            return Ok(());
        }
        match code {
            openssl_sys::SSL_ERROR_WANT_READ | openssl_sys::SSL_ERROR_WANT_WRITE => Ok(()),
            _ => Err(self.tls.refusal(&self.ssl, Some(&ErrorStack::get()), None)),
        }
    }

    fn error(&self, failure: Failure) -> TransportError {
        let code = TransportErrorCode::crypto(self.exchange.get().alert.unwrap_or(INTERNAL_ERROR));
        TransportError { code, frame: None, reason: failure.text }
    }
}

impl Drop for Handshake {
    /// QUIC closes connections, not TLS: without this OpenSSL takes the connection for broken, and lets no other resume its session.
    fn drop(&mut self) {
        if self.complete {
            let both = openssl_sys::SSL_SENT_SHUTDOWN | openssl_sys::SSL_RECEIVED_SHUTDOWN;
            // SAFETY: the session is valid, and the call only sets a number in it.
            unsafe { openssl_sys::SSL_set_shutdown(self.ssl.as_ptr(), both) };
        }
    }
}

impl Session for Handshake {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        keys::initial(id, side).expect("OpenSSL makes keys")
    }

    /// What was negotiated.
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.complete.then(|| Box::new(self.tls.facts(&self.ssl)) as Box<dyn Any>)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    /// None: there is no session to resume that allows it.
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (suite, secret) = self.exchange.get().early.as_ref()?;
        Some(keys::early(*suite, secret).expect("OpenSSL makes keys"))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        // SAFETY: the session is valid, and the call only reads it.
        self.complete.then(|| unsafe { SSL_get_early_data_status(self.ssl.as_ptr()) } == EARLY_DATA_ACCEPTED)
    }

    fn is_handshaking(&self) -> bool {
        !self.complete
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        let before = self.complete;
        self.exchange.get_mut().heard.push_back(bytes.to_vec());
        self.go_on().map_err(|failure| self.error(failure))?;
        Ok(self.complete && !before)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let read = |bytes: &[u8]| TransportParameters::read(Side::Client, &mut Cursor::new(bytes)).map(Some);
        let exchange = self.exchange.get();
        Ok(match exchange.parameters.is_empty() {
            false => read(&exchange.parameters)?,
            // Before the server's own arrive: those that it had when the session began.
            true if exchange.early.is_some() => read(&locked(&self.remembered))?,
            true => None,
        })
    }

    fn write_handshake(&mut self, into: &mut Vec<u8>) -> Option<Keys> {
        while let Some(said) = self.exchange.get_mut().said.pop_front() {
            match said {
                Said::Message(message) => into.extend_from_slice(&message),
                Said::Keys(secrets) => {
                    let keys = secrets.keys().expect("OpenSSL makes keys");
                    self.latest = Some(secrets);
                    return Some(keys);
                }
            }
        }
        None
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.latest.as_mut()?.update().ok()
    }

    fn is_valid_retry(&self, id: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        keys::is_valid_retry(id, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let label = std::str::from_utf8(label).map_err(|_| ExportKeyingMaterialError)?;
        self.ssl.export_keying_material(output, label, Some(context)).map_err(|_| ExportKeyingMaterialError)
    }
}

/// A message for the peer, in packets of the level whose keys came last.
unsafe extern "C" fn say(
    _: *mut SSL,
    bytes: *const c_uchar,
    length: usize,
    consumed: *mut usize,
    exchange: *mut c_void,
) -> c_int {
    // SAFETY: OpenSSL passes what it was given, and a message of this length.
    unsafe {
        let exchange = &mut *exchange.cast::<Exchange>();
        exchange.said.push_back(Said::Message(std::slice::from_raw_parts(bytes, length).to_vec()));
        *consumed = length;
    }
    1
}

/// The unread part of the oldest message. OpenSSL keeps it until it calls `heard`.
unsafe extern "C" fn hear(_: *mut SSL, bytes: *mut *const c_uchar, length: *mut usize, exchange: *mut c_void) -> c_int {
    // SAFETY: OpenSSL passes what it was given, and room for a pointer and a length.
    unsafe {
        let exchange = &*exchange.cast::<Exchange>();
        let rest = exchange.heard.front().map_or(&[][..], |first| &first[exchange.read..]);
        (*bytes, *length) = (rest.as_ptr(), rest.len());
    }
    1
}

/// OpenSSL has read this much of it.
unsafe extern "C" fn heard(_: *mut SSL, length: usize, exchange: *mut c_void) -> c_int {
    // SAFETY: OpenSSL passes what it was given.
    let exchange = unsafe { &mut *exchange.cast::<Exchange>() };
    exchange.read += length;
    if exchange.heard.front().is_some_and(|first| exchange.read >= first.len()) {
        exchange.heard.pop_front();
        exchange.read = 0;
    }
    1
}

unsafe extern "C" fn take_secret(
    ssl: *mut SSL,
    level: u32,
    ours: c_int,
    secret: *const c_uchar,
    length: usize,
    exchange: *mut c_void,
) -> c_int {
    // SAFETY: OpenSSL passes what it was given, its session and a secret of this length.
    let (exchange, secret, cipher) = unsafe {
        let cipher = match level {
            EARLY => SSL_SESSION_get0_cipher(openssl_sys::SSL_get_session(ssl)),
            _ => SSL_get_pending_cipher(ssl),
        };
        let number = if cipher.is_null() { 0 } else { openssl_sys::SSL_CIPHER_get_protocol_id(cipher) };
        (&mut *exchange.cast::<Exchange>(), std::slice::from_raw_parts(secret, length), number)
    };
    if level == EARLY {
        exchange.early = Suite::of(cipher).map(|suite| (suite, secret.to_vec()));
        return c_int::from(exchange.early.is_some());
    }
    let Some((suite, secrets)) = Suite::of(cipher).zip(exchange.secrets.get_mut(level as usize)) else { return 0 };
    *(if ours != 0 { &mut secrets.0 } else { &mut secrets.1 }) = secret.to_vec();
    if !secrets.0.is_empty() && !secrets.1.is_empty() {
        let (local, remote) = std::mem::take(secrets);
        exchange.said.push_back(Said::Keys(Secrets { suite, local, remote }));
    }
    1
}

unsafe extern "C" fn take_parameters(
    _: *mut SSL,
    bytes: *const c_uchar,
    length: usize,
    exchange: *mut c_void,
) -> c_int {
    // SAFETY: OpenSSL passes what it was given, and parameters of this length.
    unsafe {
        (*exchange.cast::<Exchange>()).parameters = std::slice::from_raw_parts(bytes, length).to_vec();
    }
    1
}

unsafe extern "C" fn take_alert(_: *mut SSL, alert: c_uchar, exchange: *mut c_void) -> c_int {
    // SAFETY: OpenSSL passes what it was given.
    unsafe { (*exchange.cast::<Exchange>()).alert = Some(alert) };
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Connect, Line, Request};
    use crate::transport::tls::Application;

    type Seen = Arc<Mutex<Vec<(Vec<u8>, Vec<u8>)>>>;

    /// Notes what quinn-proto wanted to say, and what OpenSSL was given.
    struct Spy(Shake, Seen);

    impl ClientConfig for Spy {
        fn start_session(
            self: Arc<Self>,
            _version: u32,
            _name: &str,
            parameters: &TransportParameters,
        ) -> Result<Box<dyn Session>, ConnectError> {
            let handshake = Handshake::start(&self.0, parameters).unwrap();
            let mut wanted = Vec::new();
            parameters.write(&mut wanted);
            self.1.lock().unwrap().push((wanted, handshake.exchange.get().ours.clone()));
            Ok(Box::new(handshake))
        }
    }

    #[test]
    fn openssl_is_given_no_parameter_that_means_nothing() {
        let line = r#"{"type":"connect","driver":"http","arm":"a","host":"::1","port":1,"tls":"require","http":"3"}"#;
        let Request::Connect(Connect::Http(_, asked)) = Line::read(line.as_bytes()).and_then(Line::request).unwrap()
        else {
            panic!("{line}")
        };
        let application = Application { name: "h3", must_agree: true };
        let tls = TlsClient::offering(&asked.server(), false, Some(application)).unwrap().unwrap();
        let seen = Arc::default();
        let config = quinn_proto::ClientConfig::new(Arc::new(Spy(Shake::new(tls), Arc::clone(&seen))));
        let resets = Arc::new(super::super::client::NoResets);
        let settings = Arc::new(quinn_proto::EndpointConfig::new(resets));
        let mut endpoint = quinn_proto::Endpoint::new(settings, None, true, None);
        let address = "[::1]:1".parse().unwrap();
        drop(endpoint.connect(std::time::Instant::now(), config, address, "server").unwrap());
        let seen = seen.lock().unwrap();
        let [(wanted, given)] = &seen[..] else { panic!("{} handshakes", seen.len()) };
        assert!(given.len() < wanted.len());
        assert_eq!(*given, without_reserved(wanted));
    }
}
