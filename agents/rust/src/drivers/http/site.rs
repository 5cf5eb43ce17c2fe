//! What an arm's connections share: where requests go, and how long to wait for responses.

use super::exchange::{Exchange, Place};
use super::statement::Asked;
use crate::failure::{Failure, Result};
use crate::lengths::Lengths;
use crate::message::Http;
use crate::program::Script;
use crate::think::Think;
use std::sync::{Arc, Mutex, PoisonError};

/// Seconds to wait for the next byte of a response, and for a connection to open.
#[derive(Clone, Copy)]
pub struct Patience {
    pub answer: u64,
    pub open: u64,
}

/// What an arm's connections share.
pub struct Site<E: Exchange> {
    place: Place,
    clear_place: Option<Place>,
    pub path: String,
    /// Headers of every request, one a line.
    pub headers: String,
    pub per_request: bool,
    /// None: connections stay open.
    pub lengths: Option<Lengths>,
    pub patience: Patience,
    /// The script that was prepared last, and its requests.
    ready: Mutex<Option<(Arc<Script>, Errands<E>)>>,
}

/// A prepared statement.
pub enum Errand<R> {
    Request {
        clear: bool,
        request: R,
        /// The same as the last one of its connection, where connections carry a number of requests.
        last: Option<R>,
    },
    Think(Think),
}

pub type Errands<E> = Arc<Vec<Errand<<E as Exchange>::Request>>>;

impl<E: Exchange> Site<E> {
    pub fn new(asked: &Http, per_request: bool, patience: Patience) -> Site<E> {
        Site {
            place: Place::new(&asked.server(), asked.authority.as_ref()),
            clear_place: asked.clear_server().map(|server| Place::new(&server, asked.clear_authority.as_ref())),
            path: asked.path.clone(),
            headers: asked.headers.0.clone(),
            per_request,
            // Checked when the message was read.
            lengths: Lengths::read(&asked.lengths).unwrap_or_default(),
            patience,
            ready: Mutex::new(None),
        }
    }

    pub fn errands(&self, script: &Arc<Script>) -> Result<Errands<E>> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, errands)) = &*ready {
            if known.statements == script.statements {
                return Ok(errands.clone());
            }
        }
        let mut errands = Vec::with_capacity(script.statements.len());
        for span in script.transactions() {
            let statements = &script.statements[span.clone()];
            if statements.iter().all(|statement| matches!(Think::read(statement), Ok(Some(_)))) {
                let sql = statements.first().map(|statement| statement.sql.trim()).unwrap_or_default();
                return Err(Failure::statement(format!("{sql:?}: the transaction has no request, it only thinks")));
            }
            // The transaction's last requests, with and without TLS, close their connections if it has its own.
            let mut last = [self.per_request; 2];
            for statement in statements.iter().rev() {
                errands.push(match Think::read(statement)? {
                    Some(think) => Errand::Think(think),
                    None => {
                        let asked = || Asked::read(statement, &self.path, &self.headers);
                        let first = asked()?;
                        let last = std::mem::take(&mut last[usize::from(first.clear)]);
                        let closing = self.lengths.as_ref().map(|_| asked()).transpose()?;
                        self.errand(first, last, closing)?
                    }
                });
            }
            errands[span].reverse();
        }
        let errands = Arc::new(errands);
        *ready = Some((script.clone(), errands.clone()));
        Ok(errands)
    }

    /// `closing`: the same request once more, where it may be the last one of its connection.
    pub fn errand(&self, asked: Asked, last: bool, closing: Option<Asked>) -> Result<Errand<E::Request>> {
        let clear = asked.clear;
        let place = match &self.clear_place {
            Some(place) if clear => place,
            None if clear => return Err(Failure::statement("CLEAR: no clear_port was given to go to")),
            _ => &self.place,
        };
        let closing = closing.map(|asked| E::compile(asked, place, true));
        Ok(Errand::Request { clear, request: E::compile(asked, place, last), last: closing })
    }
}
