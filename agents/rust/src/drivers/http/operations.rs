//! The methods that the load loop calls on a client, and the single request of a query.

use super::client::{Client, Stage};
use super::exchange::Exchange;
use super::statement::Asked;
use crate::clock::coarse_ns;
use crate::connection::{Connection, Interest, Outcome, Rows, Step, escape};
use crate::failure::{Failure, Result};
use crate::program::{Operation, Script, Statement};
use crate::transport::traffic::Segments;
use std::sync::Arc;

/// What `query` returns of a response: `body` is its beginning, and `length` counts all of it.
const COLUMNS: [&str; 9] = ["status", "location", "server", "body", "length", "type", "encoding", "closes", "stretch"];

impl<E: Exchange> Connection for Client<E> {
    fn prepare(&mut self, script: &Arc<Script>) -> Result<()> {
        script.must_not_decide("http")?;
        if script.has_loops() {
            return Err(Failure::statement(
                "a variable of kind \"each\" works in SQL statements only, not in requests",
            ));
        }
        self.errands = self.site.errands(script)?;
        self.listen();
        Ok(())
    }

    #[inline]
    fn begin(&mut self, _: &Script, operation: &mut Operation) -> Result<Step> {
        self.outcome.clear();
        self.thinking.clear();
        self.number = operation.first;
        let begun = self.start(operation).and_then(|()| match self.stage {
            Stage::Opening => Ok(Step::Pending),
            _ => self.go_on(operation),
        });
        self.forgive(begun, operation)
    }

    #[inline]
    fn proceed(&mut self, _: &Script, operation: &mut Operation) -> Result<Step> {
        let step = match (self.is_overdue(), self.stage) {
            (false, _) => self.go_on(operation),
            (true, Stage::Opening) => Err(self.not_opened()),
            (true, _) => Err(self.silent()),
        };
        self.forgive(step, operation)
    }

    #[inline]
    fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Sends one request. Returns its response, whatever its status.
    fn query(&mut self, sql: &str) -> Result<Rows> {
        let statement = Statement { sql: sql.to_string(), parameters: Vec::new(), ..Statement::default() };
        let asked = Asked::read(&statement, &self.site.path, &self.site.headers)?;
        let errand = self.site.errand(asked, self.site.per_request, None)?;
        let before = std::mem::replace(&mut self.errands, Arc::new(vec![errand]));
        self.listen();
        self.querying = true;
        let answer = self.ask();
        self.querying = false;
        self.errands = before;
        answer
    }

    fn settle(&mut self) -> Segments {
        let mut sum = self.main.link.settle();
        sum.add(self.clear.as_mut().map(|clear| clear.link.settle()).unwrap_or_default());
        sum
    }

    fn is_opening(&self) -> bool {
        self.stage == Stage::Opening
    }

    fn polled(&self) -> bool {
        self.polled
    }

    #[inline]
    fn interest(&self) -> Option<Interest> {
        let interest = self.link().interest();
        match self.stage {
            Stage::Thinking => None,
            Stage::Sending(_) => {
                interest.map(|each| Interest { events: self.link().waits_to_send_for() as u32, ..each })
            }
            _ => interest,
        }
        // Each line counts its own sockets.
        .map(|each| if self.is_clear() { Interest { opened: each.opened | 1 << 63, ..each } } else { each })
    }

    #[inline]
    fn wakes(&self) -> Option<u64> {
        match self.stage {
            Stage::Thinking => self.thinking.wakes(),
            _ => Some(self.wakes_ns()),
        }
    }

    /// After the server closed the connection or sent an unexpected response, the next request reconnects or fails.
    fn unexpected_input(&mut self, _: &Script, _: &mut Operation) -> Result<()> {
        if let Some((_, line)) = self.current() {
            if let Err(surplus) = line.attend() {
                self.surplus = Some(surplus);
            }
        }
        Ok(())
    }

    fn thinks(&mut self, on: bool) {
        self.thinking.turn(on);
    }

    #[inline]
    fn thought_ns(&self) -> u64 {
        self.thinking.thought_ns()
    }
}

impl<E: Exchange> Client<E> {
    /// If a request fails, its operation fails, not the slice; the next request reconnects.
    fn forgive(&mut self, result: Result<Step>, operation: &Operation) -> Result<Step> {
        result.or_else(|failure| {
            self.fail(failure, operation);
            Ok(Step::Done)
        })
    }

    #[cold]
    fn fail(&mut self, failure: Failure, operation: &Operation) {
        let mut text = failure.text;
        if let Some((request, line)) = self.current() {
            line.link.abandon();
            text = format!("{}: {text}", E::label(request, operation));
        }
        if self.site.per_request {
            self.close();
        }
        self.outcome.fail(&Failure { text, ..failure });
    }

    /// Sends the only request and returns its response.
    fn ask(&mut self) -> Result<Rows> {
        const LOOK_MS: i32 = 1000;
        let (script, mut operation) = (Script::default(), Operation::default());
        operation.last = 1;
        let mut step = self.begin(&script, &mut operation)?;
        while step == Step::Pending {
            if self.polled {
                self.is_ready(LOOK_MS);
            }
            step = self.proceed(&script, &mut operation)?;
        }
        if let Some(fault) = self.outcome.error.take() {
            let text = fault.text.strip_prefix(&format!("{}: ", fault.kind)).unwrap_or(&fault.text);
            return Err(Failure::new(&fault.kind, text));
        }
        let Some((_, line)) = self.current() else { return Err(Failure::internal("no request")) };
        let closes = if line.exchange.keep() { "" } else { "closes" };
        let response = line.exchange.response();
        let (details, body) = (response.details, response.body);
        let (kept, stretch) = (std::mem::take(&mut body.kept), std::mem::take(&mut body.stretch));
        let mut text = response.status.to_string();
        for value in [
            &details.location,
            &details.server,
            &*String::from_utf8_lossy(&kept),
            &body.length.to_string(),
            &details.content_type,
            &details.content_encoding,
            closes,
            &*String::from_utf8_lossy(&stretch),
        ] {
            text.push('\t');
            escape(value, &mut text);
        }
        Ok(Rows { rows: 1, columns: COLUMNS.join("\t"), text })
    }

    /// Whether no byte has arrived for too long.
    #[inline]
    fn is_overdue(&self) -> bool {
        self.polled && self.stage != Stage::Thinking && coarse_ns() >= self.until_ns() - 5_000_000 && !self.is_ready(0)
    }

    /// Waits up to this many milliseconds until the request can continue, if only by one byte; returns whether it can.
    #[cold]
    fn is_ready(&self, ms: i32) -> bool {
        let events = self.interest().map_or(libc::EPOLLIN as u32, |interest| interest.events);
        self.link().socket().is_some_and(|socket| {
            socket.set_readable_from(1);
            socket.wait_for(events as i16, ms).unwrap_or(true)
        })
    }
}
