//! The fields of `connect` for a server reached over TCP or a Unix-domain socket, and for TLS.

use super::secret::Secret;
use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tls {
    #[default]
    Off,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Whether PostgreSQL's SCRAM is bound to the TLS connection, so that nobody can pass the login on to the server.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelBinding {
    #[default]
    Disable,
    /// If client, server and certificate allow it.
    Prefer,
    Require,
}

impl Server {
    /// Whether the certificate is verified, and no authority is named for it.
    pub fn names_no_authority(&self) -> bool {
        matches!(self.tls, Tls::VerifyCa | Tls::VerifyFull) && self.tls_ca.is_none()
    }

    /// Whether another machine could pose as the server and read what we send: no TLS, and the connected address is not
    /// loopback or belongs to a relay to another machine. A name is not an address: it may resolve to anything. On a
    /// trusted network nobody does.
    pub fn exposed(&self) -> bool {
        self.tls == Tls::Off && self.elsewhere()
    }

    /// Whether another machine could pose as the server and end the connection itself, since no certificate is verified.
    pub fn unverified(&self) -> bool {
        matches!(self.tls, Tls::Off | Tls::Require) && self.elsewhere()
    }

    /// Whether the server is, or may be, on another machine, reached over a network that the user does not trust.
    fn elsewhere(&self) -> bool {
        let address = self.address.or_else(|| self.host.parse().ok());
        let loopback = address.is_some_and(|address| address.to_canonical().is_loopback());
        !self.trusted && self.socket.is_none() && (self.relayed || !loopback)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Deserialize)]
pub enum TlsVersion {
    #[serde(rename = "1.0")]
    V10,
    #[serde(rename = "1.1")]
    V11,
    #[serde(rename = "1.2")]
    V12,
    #[serde(rename = "1.3")]
    V13,
}

/// A server reached over TCP, or MySQL's by a Unix-domain socket; `check` refuses the fields that its driver does not have.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    pub host: String,
    pub port: u16,
    /// The file of its Unix-domain socket: connections are made there, and `host` and `port` only name the server.
    pub socket: Option<String>,
    pub user: String,
    pub database: Option<String>,
    pub password: Option<String>,
    pub search_path: Option<String>,
    /// Statements that run first on each connection.
    pub setup: Option<String>,
    /// The address is that of a relay to a server on another machine.
    #[serde(default)]
    pub relayed: bool,
    /// The user trusts the network to the server.
    #[serde(default)]
    pub trusted: bool,
    /// The resolved address of `host`.
    #[serde(skip)]
    pub address: Option<std::net::IpAddr>,
    #[serde(default)]
    pub tls: Tls,
    /// TLS begins with the first byte, as a proxy that ends it expects, and PostgreSQL from 17 on; the server is not asked for it.
    #[serde(default)]
    pub tls_at_once: bool,
    #[serde(default)]
    pub channel_binding: ChannelBinding,
    pub tls_ca: Option<String>,
    pub tls_server_name: Option<String>,
    pub tls_min: Option<TlsVersion>,
    pub tls_max: Option<TlsVersion>,
    pub tls_ciphers: Option<String>,
    pub tls_groups: Option<String>,
    /// OpenSSL's security level, 0 to 5. Absent: the library's default.
    pub tls_security_level: Option<u8>,
    /// PEM files: the client's certificate and its key, for a server that requests one.
    pub tls_certificate: Option<String>,
    pub tls_key: Option<String>,
    /// The same as one PEM text instead: the certificate, the chain above it, and the unencrypted key.
    #[serde(default)]
    pub tls_identity: Secret,
    #[serde(default)]
    pub resumption: bool,
    /// The first request goes before the handshake is complete, where a resumed session allows it: by HTTP/3.
    #[serde(skip)]
    pub early_data: bool,
    /// A self-signed certificate is verified by the login, with the password (MariaDB), because no authority is named.
    #[serde(skip)]
    pub login_proves: bool,
}
