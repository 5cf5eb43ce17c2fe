//! Servers on real sockets for the tests' clients, correct and faulty ones.

use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::rsa::Rsa;
use openssl::ssl::{AlpnError, SslAcceptor, SslMethod, SslStream, select_next_proto};
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509Name};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

/// A server's reaction to a request.
pub enum Reply {
    /// Writes this and keeps the connection.
    Say(Vec<u8>),
    /// Writes this and closes.
    Last(Vec<u8>),
    /// Writes these parts, each so long after the last one.
    Slowly(Vec<Vec<u8>>, Duration),
    /// Writes this, and the other part between two meetings with the client.
    Twice(Vec<u8>, Vec<u8>, Arc<Barrier>),
    Silence,
}

pub fn say(text: &str) -> Reply {
    Reply::Say(text.into())
}

pub fn last(text: &str) -> Reply {
    Reply::Last(text.into())
}

/// One received request: its head, and its body by Content-Length. None: the client has closed.
pub fn request(stream: &mut impl Read) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let text = String::from_utf8(head).unwrap();
    let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: ")).map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(text + &String::from_utf8(body).unwrap())
}

pub fn converse(mut stream: impl Read + Write, reply: &impl Fn(&str, usize) -> Reply) {
    for count in 0.. {
        let Some(asked) = request(&mut stream) else { return };
        match reply(&asked, count) {
            Reply::Say(bytes) => stream.write_all(&bytes).unwrap(),
            Reply::Last(bytes) => return drop(stream.write_all(&bytes)),
            Reply::Slowly(parts, pause) => {
                for (number, part) in parts.iter().enumerate() {
                    if number > 0 {
                        thread::sleep(pause);
                    }
                    stream.write_all(part).unwrap();
                }
            }
            Reply::Twice(one, other, meeting) => {
                stream.write_all(&one).unwrap();
                meeting.wait();
                stream.write_all(&other).unwrap();
                meeting.wait();
            }
            Reply::Silence => thread::sleep(Duration::from_secs(8)),
        }
    }
}

/// A server that replies to each request by a function of the request and of its number on the connection. Returns its port.
pub fn server(reply: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reply = Arc::new(reply);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, reply) = (stream.unwrap(), reply.clone());
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || converse(stream, &*reply));
        }
    });
    port
}

pub fn certificate() -> (PKey<openssl::pkey::Private>, X509) {
    let key = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
    let mut name = X509Name::builder().unwrap();
    name.append_entry_by_text("CN", "localhost").unwrap();
    let name = name.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_serial_number(&BigNum::from_u32(1).unwrap().to_asn1_integer().unwrap()).unwrap();
    builder.set_subject_name(&name).unwrap();
    builder.set_issuer_name(&name).unwrap();
    builder.set_pubkey(&key).unwrap();
    builder.set_not_before(&Asn1Time::days_from_now(0).unwrap()).unwrap();
    builder.set_not_after(&Asn1Time::days_from_now(2).unwrap()).unwrap();
    builder.append_extension(BasicConstraints::new().critical().ca().build().unwrap()).unwrap();
    let names = SubjectAlternativeName::new().dns("localhost").build(&builder.x509v3_context(None, None)).unwrap();
    builder.append_extension(names).unwrap();
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    (key, builder.build())
}

/// The same under TLS with its own certificate; `cut`: it ends connections without close_notify.
pub fn tls_server(cut: bool, alpn: &'static [u8], reply: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) -> u16 {
    let (key, certificate) = certificate();
    let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).unwrap();
    acceptor.set_private_key(&key).unwrap();
    acceptor.set_certificate(&certificate).unwrap();
    acceptor.set_alpn_select_callback(move |_, offered| select_next_proto(alpn, offered).ok_or(AlpnError::NOACK));
    let acceptor = acceptor.build();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reply = Arc::new(reply);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, acceptor, reply) = (stream.unwrap(), acceptor.clone(), reply.clone());
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || {
                let Ok(mut stream) = acceptor.accept(stream) else { return };
                converse(&mut stream, &*reply);
                if !cut {
                    let _ = stream.shutdown();
                }
            });
        }
    });
    port
}

/// A TLS server that can hold back its output and send it all at once.
pub fn tls_server_in_flights(alpn: &'static [u8], serve: fn(SslStream<InFlights>)) -> u16 {
    let (key, certificate) = certificate();
    let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).unwrap();
    acceptor.set_private_key(&key).unwrap();
    acceptor.set_certificate(&certificate).unwrap();
    acceptor.set_alpn_select_callback(move |_, offered| select_next_proto(alpn, offered).ok_or(AlpnError::NOACK));
    let acceptor = acceptor.build();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            let acceptor = acceptor.clone();
            thread::spawn(move || acceptor.accept(InFlights { stream, held: None }).map(serve));
        }
    });
    port
}

/// A socket that writes nothing while output is held.
pub struct InFlights {
    stream: TcpStream,
    held: Option<Vec<u8>>,
}

impl InFlights {
    pub fn hold(&mut self) {
        self.held = Some(Vec::new());
    }

    pub fn release(&mut self) {
        self.release_all_but(0);
    }

    /// Sends it without its last bytes, and those a little later.
    pub fn release_all_but(&mut self, last: usize) {
        let held = self.held.take().unwrap();
        let (first, last) = held.split_at(held.len() - last);
        self.stream.write_all(first).unwrap();
        if !last.is_empty() {
            thread::sleep(Duration::from_millis(20));
            self.stream.write_all(last).unwrap();
        }
    }

    /// Whether the client says something in time.
    pub fn hears_within(&self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).unwrap();
        self.stream.peek(&mut [0]).is_ok()
    }
}

impl Read for InFlights {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into)
    }
}

impl Write for InFlights {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.held {
            Some(held) => held.write(bytes),
            None => self.stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
