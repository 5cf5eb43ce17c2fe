//! Firebird's wire encryption: stream ciphers over a socket's bytes, one for each direction, from the session key.
//!
//! The names are those of the server's plugins. None of them authenticates what it encrypts.

use super::socket::Socket;
use super::tls::Facts;
use openssl::cipher::Cipher;
use openssl::cipher_ctx::CipherCtx;
use openssl::error::ErrorStack;
use openssl::sha::sha256;
use std::fmt;
use std::io;

/// A stream cipher that keeps its position in the key stream between calls.
enum Stream {
    ChaCha(CipherCtx),
    Arc4(Box<Arc4>),
}

impl Stream {
    fn new(plugin: &str, key: &[u8], iv: &[u8]) -> Result<Stream, String> {
        let openssl = |error: ErrorStack| error.to_string();
        let wrong = || format!("the server gave {plugin} a nonce of {} bytes", iv.len());
        // OpenSSL's counter is the first half of its 16 bytes, little-endian, and carries into all 64 bits.
        let mut start = [0; 16];
        match plugin {
            "Arc4" => return Ok(Stream::Arc4(Box::new(Arc4::new(key)))),
            "ChaCha64" => start[8..].copy_from_slice(iv.get(..8).filter(|_| iv.len() == 8).ok_or_else(wrong)?),
            "ChaCha" => {
                // A counter of 32 bits, big-endian after the nonce, if the server sends one.
                let counter: [u8; 4] = match iv.len() {
                    12 => [0; 4],
                    16 => [iv[15], iv[14], iv[13], iv[12]],
                    _ => return Err(wrong()),
                };
                start[..4].copy_from_slice(&counter);
                start[4..].copy_from_slice(&iv[..12]);
            }
            _ => return Err(format!("no wire encryption plugin {plugin:?} is known")),
        }
        let mut context = CipherCtx::new().map_err(openssl)?;
        context.encrypt_init(Some(Cipher::chacha20()), Some(&sha256(key)), Some(&start)).map_err(openssl)?;
        Ok(Stream::ChaCha(context))
    }

    /// Encrypts or decrypts in place: the same operation for a stream cipher.
    #[inline]
    fn apply(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Stream::ChaCha(context) => {
                context.cipher_update_inplace(bytes, bytes.len())?;
            }
            Stream::Arc4(cipher) => cipher.apply(bytes),
        }
        Ok(())
    }
}

/// RC4, which OpenSSL 3 keeps in its legacy provider.
struct Arc4 {
    state: [u8; 256],
    at: u8,
    swap: u8,
}

impl Arc4 {
    fn new(key: &[u8]) -> Arc4 {
        let mut state: [u8; 256] = std::array::from_fn(|at| at as u8);
        let mut swap = 0u8;
        for at in 0..256 {
            swap = swap.wrapping_add(state[at]).wrapping_add(key[at % key.len()]);
            state.swap(at, swap.into());
        }
        Arc4 { state, at: 0, swap: 0 }
    }

    fn apply(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.at = self.at.wrapping_add(1);
            let here = self.state[usize::from(self.at)];
            self.swap = self.swap.wrapping_add(here);
            let there = self.state[usize::from(self.swap)];
            self.state[usize::from(self.at)] = there;
            self.state[usize::from(self.swap)] = here;
            *byte ^= self.state[usize::from(here.wrapping_add(there))];
        }
    }
}

/// A plugin's ciphers with their key, ready for both directions.
pub struct Ciphers {
    plugin: String,
    sending: Stream,
    receiving: Stream,
}

impl Ciphers {
    /// `key`: the login's session key; `iv`: what the server sent for this plugin. Both directions use both.
    pub fn new(plugin: &str, key: &[u8], iv: &[u8]) -> Result<Ciphers, String> {
        if key.len() < 16 {
            return Err("the login gave no session key".to_string());
        }
        let (sending, receiving) = (Stream::new(plugin, key, iv)?, Stream::new(plugin, key, iv)?);
        Ok(Ciphers { plugin: plugin.to_string(), sending, receiving })
    }
}

/// A socket whose bytes are encrypted from now on.
pub struct WireCrypt {
    socket: Socket,
    ciphers: Ciphers,
    /// Encrypted output, and how much of it was sent. Reused.
    outgoing: Vec<u8>,
    sent: usize,
}

impl WireCrypt {
    pub fn new(socket: Socket, ciphers: Ciphers) -> WireCrypt {
        WireCrypt { socket, ciphers, outgoing: Vec::new(), sent: 0 }
    }

    /// There is no certificate and no handshake: only the plugin was negotiated.
    pub fn facts(&self) -> Facts {
        Facts { protocol: "wire-crypt".to_string(), cipher: self.ciphers.plugin.clone(), ..Facts::default() }
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    pub fn into_socket(self) -> Socket {
        self.socket
    }

    #[inline]
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.socket.receive(into)?;
        self.ciphers.receiving.apply(&mut into[..read])?;
        Ok(read)
    }

    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.send_some(rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.socket.wait(libc::POLLOUT)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends what the socket has room for. After `WouldBlock` the bytes are encrypted already, and the next call must begin
    /// with the same ones.
    #[inline]
    pub fn send_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.sent == self.outgoing.len() {
            self.outgoing.clear();
            self.outgoing.extend_from_slice(bytes);
            self.ciphers.sending.apply(&mut self.outgoing)?;
            self.sent = 0;
        }
        while self.sent < self.outgoing.len() {
            self.sent += self.socket.send_some(&self.outgoing[self.sent..])?;
        }
        Ok(self.sent)
    }
}

impl fmt::Debug for WireCrypt {
    /// Without keys.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WireCrypt")
            .field("plugin", &self.ciphers.plugin)
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(plugin: &str, key: &[u8], iv: &[u8], length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Stream::new(plugin, key, iv).unwrap().apply(&mut bytes).unwrap();
        bytes
    }

    /// The last block before the carry and the first after it.
    const CARRY: (&str, &str) = ("1b6765557895d7e1", "21793b07e2eb2140");

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn arc4_gives_the_key_stream_of_rfc_6229() {
        let key = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        assert_eq!(hex(&stream("Arc4", &key, &[], 16)), "9ac7cc9a609d1ef7b2932899cde41b97");
    }

    /// Compares with a separate implementation of ChaCha20; the key is the SHA-256 of the bytes 0 to 19.
    #[test]
    fn chacha_begins_where_the_server_does() {
        let key: Vec<u8> = (0..20).collect();
        let wide = stream("ChaCha64", &key, b"\x10\x11\x12\x13\x14\x15\x16\x17", 144);
        assert_eq!(hex(&wide[..16]), "0219294cee67932e9b903781773c0f8d");
        assert_eq!(hex(&wide[128..]), "35a8b3bb337dc4282c63b0dae98771d4");
        let nonce: Vec<u8> = (0x20..0x2c).chain([0, 0, 1, 2]).collect();
        let narrow = stream("ChaCha", &key, &nonce, 144);
        assert_eq!(hex(&narrow[..16]), "a8e1cb1a62293807a076437948cbe69f");
        assert_eq!(hex(&narrow[128..]), "e2580945d84a16194b4994a437123156");
    }

    #[test]
    fn the_counter_of_chacha64_exceeds_32_bits() {
        let key: Vec<u8> = (0..20).collect();
        let start = b"\xff\xff\xff\xff\0\0\0\0\x10\x11\x12\x13\x14\x15\x16\x17";
        let mut context = CipherCtx::new().unwrap();
        context.encrypt_init(Some(Cipher::chacha20()), Some(&sha256(&key)), Some(start)).unwrap();
        let mut bytes = vec![0; 128];
        Stream::ChaCha(context).apply(&mut bytes).unwrap();
        assert_eq!((hex(&bytes[..8]), hex(&bytes[64..72])), (CARRY.0.to_string(), CARRY.1.to_string()));
    }

    #[test]
    fn however_the_bytes_are_cut_the_key_stream_continues() {
        for (plugin, iv) in [("ChaCha64", &[7u8; 8][..]), ("ChaCha", &[7; 16]), ("Arc4", &[])] {
            let whole = stream(plugin, &[9; 20], iv, 1000);
            let mut cipher = Stream::new(plugin, &[9; 20], iv).unwrap();
            let mut pieces = vec![0; 1000];
            for piece in pieces.chunks_mut(37) {
                cipher.apply(piece).unwrap();
            }
            assert_eq!(pieces, whole, "{plugin}");
        }
    }

    #[test]
    fn a_nonce_of_the_wrong_length_is_refused() {
        assert!(Stream::new("ChaCha64", &[1; 20], &[0; 7]).is_err());
        assert!(Stream::new("ChaCha", &[1; 20], &[0; 8]).is_err());
        assert!(Stream::new("ChaCha64", &[1; 20], &[]).is_err());
    }

    #[test]
    fn what_a_full_socket_leaves_is_sent_later_and_only_once() {
        use std::io::Read;
        use std::os::fd::OwnedFd;
        use std::os::unix::net::UnixStream;
        let (own, mut peer) = UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        let ciphers = Ciphers::new("Arc4", &[9; 20], &[]).unwrap();
        let mut stream = WireCrypt::new(Socket::from(OwnedFd::from(own)), ciphers);
        let first: Vec<u8> = (0..3_000_000u32).map(|at| (at * 7) as u8).collect();
        let second = [first.as_slice(), b"more"].concat();
        assert_eq!(stream.send_some(&first).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let reading = std::thread::spawn(move || {
            let mut received = vec![0; 3_000_004];
            peer.read_exact(&mut received).unwrap();
            received
        });
        // More has been written behind it in the meantime.
        let mut sent = 0;
        while sent < second.len() {
            match stream.send_some(&second[sent..]) {
                Ok(more) => sent += more,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        let mut received = reading.join().unwrap();
        Stream::new("Arc4", &[9; 20], &[]).unwrap().apply(&mut received).unwrap();
        assert!(received == second);
    }
}
