//! Runs statements over Firebird's wire protocol, with the same round trips as the server's own client library.
//!
//! Each statement outside BEGIN … COMMIT is its own transaction: begin, run and commit take a round trip each. Opening a
//! cursor and fetching its first rows share a round trip; its close travels with the next message.

mod client;
mod errors;
mod format;
mod inbox;
mod login;
mod operations;
mod query;
mod rows;
pub mod sql;
mod srp;
mod statement;
#[cfg(test)]
mod tests;
mod xdr;

use super::network::facts;
use super::network::target::Target;
use super::network::wire::{Login as _, Protection};
use crate::arm::Opened;
use crate::failure::Result;
use crate::message::{self, Connected, WireCrypt};
use crate::opening;
use crate::transport::socket::resolve;
use client::FirebirdConnection;
use std::sync::Arc;

/// Opens the connections of an arm.
pub fn connect(pool: &message::Pool, asked: &message::Firebird) -> Result<Opened> {
    let address = resolve(&asked.host, asked.port)?;
    let target = |asked: message::Firebird| {
        let in_clear = asked.wire_crypt == WireCrypt::Off;
        let protection = if in_clear { Protection::Clear } else { Protection::WireCrypt };
        Arc::new(Target { address, local: None, asked, protection })
    };
    // The first connection may create the database. Later ones attach it.
    let (first, later) = (target(asked.clone()), target(message::Firebird { create: false, ..asked.clone() }));
    let polled = pool.connections > pool.threads;
    let (arm, opened) = opening::open(pool, |number| {
        let target = if number == 0 { &first } else { &later };
        let mut connection = FirebirdConnection::new(target.clone(), polled, pool.per_request);
        // If each operation opens its own connection, try one here: it checks the address and the encryption.
        if number > 0 && pool.per_request {
            return Ok((connection, None));
        }
        let facts = pool.opening(|| connection.link.open_now())?;
        let auth = connection.link.login.auth();
        let version = if number == 0 { pool.opening(|| connection.version())? } else { String::new() };
        if pool.per_request {
            connection.leave()?;
            connection.link.target = later.clone();
        }
        Ok((connection, Some((facts, version, auth))))
    })?;
    let mut connected = Connected { encrypted: asked.wire_crypt != WireCrypt::Off, ..Connected::default() };
    for (number, (facts, version, auth)) in opened.into_iter().flatten().enumerate() {
        facts::note(facts, &mut connected);
        connected.auth = auth;
        if number == 0 {
            connected.server_version = version;
        }
    }
    Ok((Box::new(arm), connected))
}
