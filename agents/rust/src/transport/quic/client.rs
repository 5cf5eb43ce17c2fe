//! How an arm's QUIC connections are made.

use super::handshake::Shake;
use super::{DATAGRAM_BYTES, Quic};
use crate::failure::{Failure, Result};
use crate::transport::socket::Socket;
use crate::transport::tls::TlsClient;
use quinn_proto::crypto::{CryptoError, HmacKey};
use quinn_proto::{
    ClientConfig, Endpoint, EndpointConfig, IdleTimeout, RandomConnectionIdGenerator, TransportConfig, VarInt,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Bytes that the server may send on a stream before this client has read them: as much as by HTTP/2.
const WINDOW: u32 = 1 << 30;

/// What an application says about itself to the transport.
#[derive(Debug, Clone, Copy)]
pub struct Manners {
    /// What the client sends first, on a stream for it alone.
    pub first: &'static [u8],
    /// The code of a goodbye without an error.
    pub goodbye: u32,
}

/// How an arm's connections are made.
pub struct QuicClient {
    endpoint: Arc<EndpointConfig>,
    config: ClientConfig,
    manners: Manners,
}

impl QuicClient {
    pub fn new(tls: TlsClient, manners: Manners) -> QuicClient {
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .stream_receive_window(VarInt::from_u32(WINDOW))
            .datagram_receive_buffer_size(None)
            // The server says when an idle connection ends.
            .max_idle_timeout(None::<IdleTimeout>);
        let mut config = ClientConfig::new(Arc::new(Shake::new(tls)));
        config.transport_config(Arc::new(transport));
        let mut endpoint = EndpointConfig::new(Arc::new(NoResets));
        // Each connection has its socket, so its packets need no name.
        endpoint.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0)));
        endpoint.max_udp_payload_size(DATAGRAM_BYTES).expect("QUIC allows datagrams of this size");
        QuicClient { endpoint: Arc::new(endpoint), config, manners }
    }

    /// Begins a connection on this socket.
    pub fn start(&self, socket: Socket, address: SocketAddr) -> Result<Box<Quic>> {
        let mut endpoint = Endpoint::new(self.endpoint.clone(), None, true, None);
        let begun = endpoint.connect(Instant::now(), self.config.clone(), address, "server");
        // The handshake's own failure comes as this error's text.
        let (handle, connection) = begun.map_err(|error| match error {
            quinn_proto::ConnectError::InvalidServerName(text) => Failure::tls(text),
            other => Failure::connect(format!("cannot connect to {address}: {other}")),
        })?;
        Ok(Box::new(Quic {
            socket,
            address,
            endpoint,
            handle,
            connection,
            manners: self.manners,
            connected: false,
            lost: None,
            stream: None,
            readable: false,
            asides: Vec::new(),
            aside: false,
            due: None,
            due_ns: None,
            room: Vec::new(),
        }))
    }
}

/// A client without names for its packets gives out no tokens to reset it, so this never signs any.
pub(super) struct NoResets;

impl HmacKey for NoResets {
    fn sign(&self, _: &[u8], out: &mut [u8]) {
        out.fill(0);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> std::result::Result<(), CryptoError> {
        Err(CryptoError)
    }
}
