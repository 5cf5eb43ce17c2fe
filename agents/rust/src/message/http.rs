//! The fields of `connect` for a web server.

use super::header_lines;
use super::secret::Secret;
use super::server::{ChannelBinding, Server, Tls, TlsVersion};
use crate::failure::{Failure, Result};
use crate::lengths::Lengths;
use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
pub enum HttpVersion {
    #[default]
    #[serde(rename = "1.1")]
    V11,
    #[serde(rename = "2")]
    V2,
    #[serde(rename = "3")]
    V3,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    pub host: String,
    pub port: u16,
    #[serde(default)]
    pub http: HttpVersion,
    pub authority: Option<String>,
    /// The default path of a request.
    #[serde(default = "root")]
    pub path: String,
    /// Headers of every request, one a line.
    #[serde(default)]
    pub headers: Secret,
    pub clear_host: Option<String>,
    pub clear_port: Option<u16>,
    pub clear_authority: Option<String>,
    #[serde(default)]
    pub tls: Tls,
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
    /// How many requests connections carry before they close: `REQUESTS:WEIGHT`, separated by spaces. Empty: they stay open.
    #[serde(default)]
    pub lengths: String,
    /// The first request goes before the handshake is complete (0-RTT), where a resumed session allows it.
    #[serde(default)]
    pub early_data: bool,
}

fn root() -> String {
    "/".to_string()
}

impl Http {
    /// The server of requests.
    pub fn server(&self) -> Server {
        Server {
            host: self.host.clone(),
            port: self.port,
            socket: None,
            user: String::new(),
            database: None,
            password: None,
            search_path: None,
            setup: None,
            relayed: false,
            trusted: false,
            address: None,
            tls: self.tls,
            tls_at_once: false,
            channel_binding: ChannelBinding::Disable,
            tls_ca: self.tls_ca.clone(),
            tls_server_name: self.tls_server_name.clone(),
            tls_min: self.tls_min,
            tls_max: self.tls_max,
            tls_ciphers: self.tls_ciphers.clone(),
            tls_groups: self.tls_groups.clone(),
            tls_security_level: self.tls_security_level,
            tls_certificate: self.tls_certificate.clone(),
            tls_key: self.tls_key.clone(),
            tls_identity: self.tls_identity.clone(),
            resumption: self.resumption,
            early_data: self.early_data,
            login_proves: false,
        }
    }

    /// The server of `CLEAR` requests, if there is one.
    pub fn clear_server(&self) -> Option<Server> {
        let host = self.clear_host.as_ref().unwrap_or(&self.host).clone();
        self.clear_port.map(|port| Server { host, port, tls: Tls::Off, ..self.server() })
    }

    pub fn check(&self) -> Result<()> {
        if !self.path.starts_with('/') || self.path.contains(|letter: char| letter.is_whitespace() || letter == '#') {
            return Err(Failure::bad_message("path: must begin with / and contain no space and no #"));
        }
        for (name, value) in [("authority", &self.authority), ("clear_authority", &self.clear_authority)] {
            let word = |value: &String| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
            if !value.as_ref().is_none_or(word) {
                return Err(Failure::bad_message(format!("{name}: must be one word of ASCII")));
            }
        }
        if let Err(wrong) = header_lines::parse(&self.headers.0) {
            return Err(Failure::bad_message(format!("headers: {wrong}")));
        }
        Lengths::read(&self.lengths).map_err(|wrong| Failure::bad_message(format!("lengths: {wrong}")))?;
        if self.http == HttpVersion::V3 {
            self.check_quic()?;
        }
        if self.early_data && (self.http != HttpVersion::V3 || !self.resumption) {
            return Err(Failure::bad_message("early_data: only with http 3 and resumption"));
        }
        if self.clear_port.is_none() && (self.clear_host.is_some() || self.clear_authority.is_some()) {
            return Err(Failure::bad_message("clear_host, clear_authority: only with clear_port"));
        }
        Ok(())
    }

    /// HTTP/3 is always encrypted, by TLS 1.3.
    fn check_quic(&self) -> Result<()> {
        if self.tls == Tls::Off {
            return Err(Failure::bad_message(
                "tls: HTTP/3 is always encrypted; give require, verify-ca or verify-full",
            ));
        }
        if self.tls_max.is_some_and(|version| version < TlsVersion::V13) {
            return Err(Failure::bad_message("tls_max: HTTP/3 needs TLS 1.3"));
        }
        if self.clear_port.is_some() {
            return Err(Failure::bad_message("clear_port: HTTP/3 has no unencrypted form for CLEAR requests"));
        }
        Ok(())
    }
}
