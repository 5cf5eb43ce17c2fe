//! Sends requests to a web server, one at a time per connection, and reopens connections that the server closes.

mod body;
mod client;
mod exchange;
pub mod headers;
mod hpack;
mod line;
mod one;
mod operations;
mod qpack;
mod reader;
mod reply;
mod site;
pub mod statement;
#[cfg(test)]
pub mod tests;
mod text;
pub mod three;
mod two;

use super::network::facts;
use super::network::target::Target;
use super::network::wire::Protection;
use crate::arm::Opened;
use crate::failure::Result;
use crate::message::{self, Connected, Http, HttpVersion, Tls};
use crate::opening;
use crate::transport::quic::QuicClient;
use crate::transport::socket::resolve;
use crate::transport::tls::{Application, TlsClient};
use client::Client;
use exchange::Exchange;
use line::Line;
use one::One;
use site::{Patience, Site};
use std::sync::Arc;
use three::Three;
use two::Two;

const PATIENCE: Patience = Patience { answer: 30, open: 10 };

/// Opens the connections of an arm.
pub fn connect(pool: &message::Pool, asked: &Http) -> Result<Opened> {
    match asked.http {
        HttpVersion::V11 => connect_by::<One>(pool, asked, PATIENCE),
        HttpVersion::V2 => connect_by::<Two>(pool, asked, PATIENCE),
        HttpVersion::V3 => connect_by::<Three>(pool, asked, PATIENCE),
    }
}

fn connect_by<E: Exchange>(pool: &message::Pool, asked: &Http, patience: Patience) -> Result<Opened> {
    let site = Arc::new(Site::<E>::new(asked, pool.per_request, patience));
    let asked_version = asked.http;
    let target = |asked: message::Server| -> Result<Arc<Target<message::Server>>> {
        let tls = TlsClient::offering(
            &asked,
            pool.is_crowd(),
            Some(Application { name: E::NAME, must_agree: E::MUST_AGREE }),
        )?;
        let protection = match (asked_version, tls) {
            (HttpVersion::V3, Some(tls)) => Protection::Quic(QuicClient::new(tls, three::MANNERS)),
            (_, tls) => tls.into(),
        };
        Ok(Arc::new(Target { address: resolve(&asked.host, asked.port)?, local: None, asked, protection }))
    };
    let target_of_clear = asked.clear_server().map(target).transpose()?;
    let target = target(asked.server())?;
    let polled = pool.connections > pool.threads;
    let (arm, opened) = opening::open(pool, |number| {
        let clear = target_of_clear.as_ref().map(|target| Line::new(target.clone(), polled, pool.per_request));
        let main = Line::new(target.clone(), polled, pool.per_request);
        let mut client = Client::<E>::new(site.clone(), main, clear, polled, number as u64);
        // If each operation opens its own connections, try them here once.
        if number > 0 && pool.per_request {
            return Ok((client, None));
        }
        let facts = pool.opening(|| client.open_now())?;
        if pool.per_request {
            client.close();
        }
        Ok((client, Some(facts)))
    })?;
    let encrypted = asked.tls != Tls::Off;
    let mut connected = Connected { encrypted, application: E::NAME.to_string(), ..Connected::default() };
    opened.into_iter().flatten().for_each(|facts| facts::note(facts, &mut connected));
    Ok((Box::new(arm), connected))
}
