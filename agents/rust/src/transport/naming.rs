//! What certificates, keys and groups are called in messages and answers.

use openssl::pkey::{Id, KeyType, PKeyRef, Public};
use openssl::x509::{GeneralNameRef, X509NameRef, X509Ref};
use std::net::IpAddr;

/// "CN=localhost", "O=Example,CN=db".
pub fn subject(certificate: &X509Ref) -> String {
    named_as(certificate.subject_name())
}

pub fn named_as(name: &X509NameRef) -> String {
    let entries = name.entries().map(|entry| {
        let field = entry.object().nid().short_name().unwrap_or("?");
        format!("{field}={}", entry.data().to_string().unwrap_or_default())
    });
    entries.collect::<Vec<_>>().join(",")
}

/// The names for which a certificate is valid.
pub fn names(certificate: &X509Ref) -> String {
    let name = |name: &GeneralNameRef| {
        let ip = name.ipaddress().and_then(|bytes| match bytes.len() {
            4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
            16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
            _ => None,
        });
        name.dnsname().map(String::from).or_else(|| ip.map(|ip| ip.to_string()))
    };
    let names: Vec<String> = match certificate.subject_alt_names() {
        Some(names) => names.iter().filter_map(name).collect(),
        None => Vec::new(),
    };
    if names.is_empty() { subject(certificate) } else { names.join(", ") }
}

pub fn key_name(key: &PKeyRef<Public>) -> String {
    let curve = || {
        key.ec_key().ok().and_then(|ec| ec.group().curve_name()).and_then(|nid| nid.short_name().ok().map(String::from))
    };
    match key.id() {
        Id::RSA => format!("RSA {}", key.bits()),
        Id::EC => format!("EC {}", curve().unwrap_or_default()).replace("prime256v1", "P-256"),
        Id::ED25519 => "Ed25519".to_string(),
        Id::ED448 => "Ed448".to_string(),
        _ => [(KeyType::ML_DSA_44, "ML-DSA-44"), (KeyType::ML_DSA_65, "ML-DSA-65"), (KeyType::ML_DSA_87, "ML-DSA-87")]
            .into_iter()
            .find(|(kind, _)| key.is_a(*kind))
            .map_or_else(|| format!("{} bits", key.bits()), |(_, name)| name.to_string()),
    }
}

/// The standard name, if OpenSSL uses another.
pub fn group_name(name: &str) -> String {
    match name {
        "x25519" => "X25519".to_string(),
        "x448" => "X448".to_string(),
        "secp256r1" | "prime256v1" => "P-256".to_string(),
        "secp384r1" => "P-384".to_string(),
        "secp521r1" => "P-521".to_string(),
        other => other.to_string(),
    }
}
