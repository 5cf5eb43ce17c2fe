//! Requests outside the load loop, each waiting for its response: preparing, queries, the server's version.

use super::client::{Awaited, FirebirdConnection};
use super::format::{Described, Description, Format, Kind, describe};
use super::inbox::Packet;
use super::sql::{self, Verb};
use super::statement::{self, Prepared};
use super::xdr::Reader;
use crate::connection::{QUERY_LIMIT_BYTES, Rows, escape};
use crate::failure::{Failure, Result};
use crate::program::{Script, Statement};

/// Memory for the values of a batch, without their texts: a NULL takes one bit of a row, and a row may have no column.
const MOST_HELD_BYTES: usize = 4 * QUERY_LIMIT_BYTES;

/// A value of a row, or the BLOB that holds it.
enum Value {
    Null,
    Text(String),
    Blob(i64),
}

impl FirebirdConnection {
    /// Sends pending messages and waits for postponed responses.
    fn flush(&mut self) -> Result<()> {
        self.link.flush()?;
        while self.awaited.pop_front().is_some() {
            self.next_now(&Format::default())?;
        }
        Ok(())
    }

    /// Waits for the next packet.
    fn next_now(&mut self, format: &Format) -> Result<Packet<'_>> {
        // Checked twice: a value returned from within the loop would borrow the inbox for all of it.
        while self.link.inbox.next_is_missing(format)? {
            self.link.await_more()?;
        }
        self.link.inbox.next(format)?.ok_or_else(|| Failure::internal("a packet was lost"))
    }

    /// Sends pending messages and waits for the last response. Returns its object and its data.
    fn answer(&mut self) -> Result<(i32, Vec<u8>)> {
        self.flush()?;
        match self.next_now(&Format::default())? {
            Packet::Response { object, data, failure: None } => Ok((object, data.to_vec())),
            Packet::Response { failure: Some((_, failure)), .. } => Err(failure),
            other => Err(Failure::connect(format!("unexpected response from the server: {other:?}"))),
        }
    }

    pub fn version(&mut self) -> Result<String> {
        statement::ask_version(&mut self.link.outbox, self.link.login.database);
        Ok(statement::version(&self.answer()?.1))
    }

    /// Detaches from the database and closes the connection.
    pub fn leave(&mut self) -> Result<()> {
        self.link.login.detach(&mut self.link.outbox);
        self.answer()?;
        self.link.close();
        Ok(())
    }

    fn begin_now(&mut self) -> Result<i32> {
        statement::begin(&mut self.link.outbox, self.link.login.database, false);
        let transaction = self.answer()?.0;
        self.transaction = Some(transaction);
        Ok(transaction)
    }

    fn end_now(&mut self, commit: bool) -> Result<()> {
        let Some(transaction) = self.transaction else { return Ok(()) };
        statement::end(&mut self.link.outbox, transaction, commit);
        self.answer()?;
        self.transaction = None;
        Ok(())
    }

    /// Frees a statement. The server responds only with the next request.
    pub fn forget(&mut self, statement: &Prepared) {
        if statement.verb == Some(Verb::Other) {
            statement.drop(&mut self.link.outbox);
            self.awaited.push_back(Awaited::Ignored);
        }
    }

    /// Prepares every statement of a script within its own transaction.
    pub fn prepare_now(&mut self, script: &Script) -> Result<Vec<Prepared>> {
        self.begin_now()?;
        let prepare = |statement: &Statement| match Prepared::of(statement) {
            Prepared { verb: None, reads, open, .. } => {
                self.describe_one(&statement.sql).map(|(handle, order, found)| Prepared {
                    reads,
                    open,
                    ..Prepared::of_script(handle, order, &found, script, statement)
                })
            }
            own => Ok(own),
        };
        let prepared: Result<Vec<Prepared>> = script.statements.iter().map(prepare).collect();
        let ended = self.end_now(prepared.is_ok());
        prepared.and_then(|prepared| ended.map(|()| prepared))
    }

    /// Prepares a statement for people: its rows come as text.
    fn prepare_one(&mut self, sql: &str) -> Result<(Prepared, Vec<Described>)> {
        let (handle, order, description) = self.describe_one(sql)?;
        Ok((Prepared::new(handle, order, &description, true), description.columns))
    }

    /// Prepares a statement. Returns its handle, the order of its parameters and its description.
    fn describe_one(&mut self, sql: &str) -> Result<(i32, Vec<usize>, Description)> {
        let (database, transaction) = (self.link.login.database, self.transaction.unwrap_or(0));
        let order = statement::prepare(&mut self.link.outbox, database, transaction, sql);
        // One flight gets two responses.
        let handle = self.answer()?.0;
        let described = self.answer().and_then(|(_, data)| describe(&data));
        match described {
            Ok(description) => Ok((handle, order, description)),
            Err(failure) => {
                self.forget(&Prepared { handle, ..Prepared::own(Verb::Other) });
                Err(failure)
            }
        }
    }

    /// Runs statements; returns the result of the last one with rows.
    pub fn query_now(&mut self, sql: &str) -> Result<Rows> {
        let mut rows = Rows::default();
        for statement in sql::split(sql) {
            let ran = match sql::verb(statement) {
                Verb::Begin => self.begin_now().map(|_| None),
                Verb::Commit => self.end_now(true).map(|()| None),
                Verb::Rollback => self.end_now(false).map(|()| None),
                Verb::DropDatabase => {
                    statement::drop_database(&mut self.link.outbox, self.link.login.database);
                    self.answer().map(|_| None)
                }
                Verb::Other if self.transaction.is_some() => self.run_one(statement),
                Verb::Other => {
                    self.begin_now()?;
                    let ran = self.run_one(statement);
                    ran.and_then(|found| self.end_now(true).map(|()| found))
                }
            };
            match ran {
                Ok(Some(found)) => rows = found,
                Ok(None) => {}
                Err(failure) => {
                    if !failure.lost {
                        self.end_now(false)?;
                    }
                    return Err(failure);
                }
            }
        }
        Ok(rows)
    }

    /// Runs one statement in the open transaction. None if it returns no rows.
    fn run_one(&mut self, sql: &str) -> Result<Option<Rows>> {
        let (prepared, columns) = self.prepare_one(sql)?;
        let ran = if prepared.parameters.is_empty() {
            self.rows_of(&prepared)
        } else {
            Err(Failure::statement("a query takes no parameters"))
        };
        self.forget(&prepared);
        let mut rows = ran?;
        if prepared.columns.is_empty() {
            return Ok(None);
        }
        for (number, column) in columns.iter().enumerate() {
            if number > 0 {
                rows.columns.push('\t');
            }
            escape(&column.name, &mut rows.columns);
        }
        Ok(Some(rows))
    }

    fn rows_of(&mut self, prepared: &Prepared) -> Result<Rows> {
        let (mut rows, mut too_long) = (Rows::default(), false);
        let transaction = self.transaction.unwrap_or(0);
        prepared.run(&mut self.link.outbox, transaction, self.link.login.protocol, std::iter::empty())?;
        self.flush()?;
        let (mut refusal, mut batch, mut last) = (None, Vec::new(), !prepared.cursor);
        // A row without a cursor precedes the response.
        if !prepared.cursor && !prepared.columns.is_empty() {
            match self.next_now(&prepared.columns)? {
                Packet::Single(row) => batch.extend(row.map(|row| values(row, &prepared.columns))),
                Packet::Response { failure: Some((_, failure)), .. } => return Err(failure),
                other => return Err(Failure::connect(format!("unexpected response from the server: {other:?}"))),
            }
        }
        if let Packet::Response { failure: Some((_, failure)), .. } = self.next_now(&prepared.columns)? {
            refusal = Some(failure);
        }
        while !last {
            let (mut size, mut held) = (0, 0);
            loop {
                match self.next_now(&prepared.columns)? {
                    Packet::Row(row) => {
                        size += row.len();
                        held += size_of::<Vec<Value>>() + prepared.columns.kinds.len() * size_of::<Value>();
                        if rows.text.len() + size <= QUERY_LIMIT_BYTES && held <= MOST_HELD_BYTES {
                            batch.push(values(row, &prepared.columns));
                        } else {
                            too_long = true;
                        }
                    }
                    Packet::Batch { last: end } => {
                        last = end;
                        break;
                    }
                    Packet::Response { failure, .. } => {
                        let failure = failure.map(|(_, failure)| failure);
                        return Err(refusal.or(failure).unwrap_or_else(|| Failure::connect("rows are missing")));
                    }
                    other => return Err(Failure::connect(format!("unexpected response from the server: {other:?}"))),
                }
            }
            self.add(std::mem::take(&mut batch), &mut rows)?;
            if !last {
                prepared.fetch(&mut self.link.outbox, false);
                self.flush()?;
            }
        }
        if let Some(failure) = refusal {
            return Err(failure);
        }
        self.add(batch, &mut rows)?;
        if too_long || rows.text.len() > QUERY_LIMIT_BYTES {
            return Err(Failure::statement("the answer is longer than 16 MiB"));
        }
        Ok(rows)
    }

    fn add(&mut self, batch: Vec<Vec<Value>>, rows: &mut Rows) -> Result<()> {
        for row in batch {
            // BLOBs are read one by one, and each may be long.
            if rows.text.len() > QUERY_LIMIT_BYTES {
                break;
            }
            if rows.rows > 0 {
                rows.text.push('\n');
            }
            rows.rows += 1;
            for (number, value) in row.into_iter().enumerate() {
                if number > 0 {
                    rows.text.push('\t');
                }
                match value {
                    Value::Null => rows.text.push_str("\\N"),
                    Value::Text(text) => escape(&text, &mut rows.text),
                    Value::Blob(id) => {
                        let content = self.blob_now(id)?;
                        escape(&String::from_utf8_lossy(&content), &mut rows.text);
                    }
                }
            }
        }
        Ok(())
    }

    fn blob_now(&mut self, id: i64) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        statement::open_blob(&mut self.link.outbox, self.transaction.unwrap_or(0), id);
        let blob = self.answer()?.0;
        loop {
            statement::get_segment(&mut self.link.outbox, blob);
            let (state, data) = self.answer()?;
            statement::segments(&data).for_each(|segment| content.extend_from_slice(segment));
            if state == 2 || content.len() > QUERY_LIMIT_BYTES {
                break;
            }
        }
        statement::close_blob(&mut self.link.outbox, blob);
        self.awaited.push_back(Awaited::Ignored);
        Ok(content)
    }
}

fn values(row: &[u8], format: &Format) -> Vec<Value> {
    let mut values = Vec::with_capacity(format.kinds.len());
    format.walk(&mut Reader::new(row), |kind, value| {
        values.push(match (kind, value) {
            (_, None) => Value::Null,
            (Kind::Blob, Some(id)) => Value::Blob(id.try_into().map_or(0, i64::from_be_bytes)),
            (_, Some(text)) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        });
    });
    values
}
