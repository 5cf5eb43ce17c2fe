//! Runs statements on Turso, whose library is loaded at run time: both arms use the same one, and only the key differs.

mod ffi;
mod library;

use super::cells::{capture, hash_row};
use super::embedded::{self, Embedded};
use super::loaded;
use super::statements::{self, Statement};
use crate::arm::Opened;
use crate::connection::{Outcome, Rows};
use crate::failure::{Failure, Result};
use crate::message::{self, Connected};
use crate::program::{Captured, Operation, Parameter, Script};
use library::{Database, Prepared, Session};
use std::sync::{Arc, Mutex, PoisonError, Weak};

pub fn connect(pool: &message::Pool, asked: &message::Turso) -> Result<Opened> {
    let asked = Arc::new(asked.clone());
    embedded::connect(pool, || Turso { asked: asked.clone(), statements: Vec::new(), session: None, row: Vec::new() })
}

/// Databases in use. Turso gives a file that this process has open already to everyone who asks for it, whatever the key, so a
/// database counts as open only for those who ask for it in the same way.
static DATABASES: Mutex<Vec<(Arc<message::Turso>, Weak<Database>)>> = Mutex::new(Vec::new());

fn database(asked: &Arc<message::Turso>) -> Result<Arc<Database>> {
    let mut databases = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    databases.retain(|(_, database)| database.strong_count() > 0);
    for (known, database) in databases.iter().filter(|(known, _)| known.path == asked.path) {
        let Some(database) = database.upgrade() else { continue };
        if (&known.key, &known.cipher) == (&asked.key, &asked.cipher) {
            return Ok(database);
        }
        return Err(Failure::connect(format!("{}: is open with another key", asked.path)));
    }
    if let Some(first) = &asked.extension {
        loaded::provide(first)?;
    }
    let encryption = asked.key.as_deref().map(|key| (asked.cipher.as_deref().unwrap_or("aegis256"), key));
    let database = Database::open(&asked.library, &asked.path, encryption).map_err(|failure| {
        // Turso's message may repeat the key.
        let text = failure.text.replace(asked.key.as_deref().unwrap_or("\0"), "…");
        Failure::connect(format!("{}: {text}", asked.path))
    })?;
    let database = Arc::new(database);
    databases.push((asked.clone(), Arc::downgrade(&database)));
    Ok(database)
}

struct Turso {
    asked: Arc<message::Turso>,
    // Before `session`: statements are dropped first.
    statements: Vec<(Prepared, Vec<usize>)>,
    session: Option<(Session, Arc<Database>)>,
    row: Vec<u8>,
}

impl Turso {
    fn session(&self) -> Result<&Session> {
        self.session.as_ref().map(|(session, _)| session).ok_or_else(|| Failure::connect("the database is closed"))
    }

    /// The cipher that the connection reports; empty: none.
    fn cipher(&self) -> Result<String> {
        self.run("PRAGMA cipher").map(|rows| if rows.text == "\\N" { String::new() } else { rows.text })
    }
}

impl Embedded for Turso {
    fn open(&mut self) -> Result<()> {
        let database = database(&self.asked)?;
        let failed = |failure: Failure| Failure::connect(format!("{}: {}", self.asked.path, failure.text));
        let session = Session::new(&database).map_err(failed)?;
        self.session = Some((session, database));
        if let Some(pragmas) = &self.asked.pragmas {
            self.run(pragmas).map_err(failed)?;
        }
        Ok(())
    }

    fn close(&mut self) {
        self.statements.clear();
        self.session = None;
    }

    fn facts(&self) -> Result<Connected> {
        let cipher = self.cipher()?;
        let version = self.session.as_ref().map(|(_, database)| database.version()).unwrap_or_default();
        let mut connected = Connected {
            encrypted: !cipher.is_empty(),
            library: format!("Turso {version}"),
            server_version: version,
            ..Connected::default()
        };
        if connected.encrypted {
            connected.protocol = "turso".into();
            connected.cipher = cipher;
        }
        Ok(connected)
    }

    fn check(&self) -> Result<()> {
        let cipher = self.cipher()?;
        if cipher.is_empty() == self.asked.key.is_some() {
            let path = &self.asked.path;
            return Err(Failure::connect(format!("{path}: is not as asked: Turso reports the cipher {cipher:?}")));
        }
        Ok(())
    }

    fn run(&self, sql: &str) -> Result<Rows> {
        let session = self.session()?;
        statements::run(sql, |text| session.prepare(text), Prepared::step)
    }

    fn prepare(&mut self, script: &Script) -> Result<()> {
        self.statements.clear();
        if script.statements.iter().any(|statement| statement.open) {
            return Err(Failure::statement("the turso driver opens no sealed values"));
        }
        let session = self.session()?;
        self.statements = statements::of_script(script, |text| session.prepare(text))?;
        Ok(())
    }

    #[inline]
    fn run_prepared(
        &mut self,
        script: &Script,
        number: usize,
        operation: &mut Operation,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let (asked, (statement, indices)) = (&script.statements[number], &mut self.statements[number]);
        for (&variable, &index) in asked.parameters.iter().zip(indices.iter()) {
            let bound = match operation.parameter(variable) {
                Parameter::Integer(value) => statement.bind_integer(index, value),
                Parameter::Boolean(value) => statement.bind_integer(index, value.into()),
                Parameter::Real(value) => statement.bind_real(index, value),
                Parameter::Null => statement.bind_null(index),
                Parameter::Text(text) => statement.bind_text(index, text),
                Parameter::Bytes(bytes) => statement.bind_bytes(index, bytes),
            };
            if !bound {
                return Err(Failure::statement(format!("{}: Turso takes no value for ${index}", asked.sql)));
            }
        }
        let columns = statement.columns();
        let mut captured = asked.into.as_ref().map(|_| Captured::default());
        if let Some(captured) = &mut captured {
            (0..columns).for_each(|column| captured.column(script, asked, &statement.column_name(column)));
        }
        let ended = loop {
            match statement.step() {
                Ok(true) => {
                    hash_row(statement, columns, &mut self.row, outcome);
                    if let Some(captured) = &mut captured {
                        capture(statement, columns, captured, operation);
                    }
                }
                other => break other,
            }
        };
        // A statement that failed repeats its error here.
        let reset = statement.reset();
        ended.and(reset)?;
        captured.map_or(Ok(()), |captured| captured.end(asked))
    }

    #[cold]
    fn roll_back(&self) {
        if self.session().is_ok_and(|session| !session.in_autocommit()) {
            // If it fails, the operation's own error is the one to report, and the next BEGIN fails too.
            let _ = self.run("ROLLBACK");
        }
    }
}
