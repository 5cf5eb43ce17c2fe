//! Runs statements on SQLite or SQLCipher: one library, and only the key differs.

mod ffi;
mod library;

use super::cells::{capture, hash_row, put_row};
use super::embedded::{self, Embedded};
use super::statements::{self, Statement};
use crate::arm::Opened;
use crate::connection::{Outcome, Rows};
use crate::failure::{Failure, Result};
use crate::message::{self, Connected};
use crate::program::{Captured, Operation, Parameter, Script};
use library::{Database, Prepared};
use std::ffi::c_int;
use std::sync::Arc;

pub fn connect(pool: &message::Pool, asked: &message::Sqlite) -> Result<Opened> {
    let asked = Arc::new(asked.clone());
    embedded::connect(pool, || Sqlite { asked: asked.clone(), statements: Vec::new(), database: None, row: Vec::new() })
}

struct Sqlite {
    asked: Arc<message::Sqlite>,
    // Before `database`: statements are dropped first.
    statements: Vec<(Prepared, Vec<c_int>)>,
    database: Option<Database>,
    row: Vec<u8>,
}

impl Sqlite {
    fn database(&self) -> Result<&Database> {
        self.database.as_ref().ok_or_else(|| Failure::connect("the database is closed"))
    }
}

impl Embedded for Sqlite {
    fn open(&mut self) -> Result<()> {
        let asked = self.asked.clone();
        let database = Database::open(&asked.path)?;
        database.count_pages()?;
        if let Some(bytes) = asked.reserve {
            database.reserve(bytes)?;
        }
        self.database = Some(database);
        let failed = |failure: Failure| Failure::connect(format!("{}: {}", asked.path, failure.text));
        if let Some(key) = &asked.key {
            let key = if asked.passphrase { format!("'{}'", key.replace('\'', "''")) } else { format!("\"x'{key}'\"") };
            self.run(&format!("PRAGMA key = {key}")).map_err(failed)?;
        }
        if let Some(pragmas) = &asked.pragmas {
            self.run(pragmas).map_err(failed)?;
        }
        // A wrong or unnecessary key shows at the first page that is read.
        self.run("SELECT count(*) FROM sqlite_master").map_err(|failure| {
            Failure::connect(format!("{}: {} (wrong key, or encrypted and no key given?)", asked.path, failure.text))
        })?;
        Ok(())
    }

    fn close(&mut self) {
        self.statements.clear();
        self.database = None;
    }

    fn facts(&self) -> Result<Connected> {
        let fact = |sql: &str| self.run(sql).map(|rows| rows.text);
        let version = fact("SELECT sqlite_version()")?;
        let sqlcipher = fact("PRAGMA cipher_version")?;
        let encrypted = fact("PRAGMA cipher_status")? == "1";
        let mut connected = Connected {
            encrypted,
            library: format!("SQLite {version}, SQLCipher {sqlcipher}"),
            server_version: version,
            ..Connected::default()
        };
        if encrypted {
            // "PRAGMA cipher_page_size = 4096;" and so on, one a line.
            let settings = fact("PRAGMA cipher_settings")?;
            let setting = |name: &str| {
                let line = settings.lines().find(|line| line.contains(name));
                line.and_then(|line| line.split('=').nth(1)).unwrap_or("").trim_matches([' ', ';']).to_string()
            };
            connected.protocol = "sqlcipher".into();
            connected.cipher = match setting("cipher_use_hmac").as_str() {
                "0" => "AES-256-CBC".into(),
                _ => format!("AES-256-CBC {}", setting("cipher_hmac_algorithm")),
            };
            connected.library += &format!(", {}", fact("PRAGMA cipher_provider_version")?);
        }
        Ok(connected)
    }

    fn check(&self) -> Result<()> {
        if (self.run("PRAGMA cipher_status")?.text == "1") != self.asked.key.is_some() {
            return Err(Failure::connect("SQLCipher did not accept the key"));
        }
        Ok(())
    }

    fn run(&self, sql: &str) -> Result<Rows> {
        let database = self.database()?;
        let step = |statement: &mut Prepared| {
            let code = statement.step();
            database.check(code).map(|()| code == ffi::SQLITE_ROW)
        };
        statements::run(sql, |text| database.prepare(text), step)
    }

    fn prepare(&mut self, script: &Script) -> Result<()> {
        self.statements.clear();
        let database = self.database()?;
        self.statements = statements::of_script(script, |text| database.prepare(text))?;
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
        let Some(database) = &self.database else { return Err(Failure::connect("the database is closed")) };
        let (asked, (statement, indices)) = (&script.statements[number], &mut self.statements[number]);
        for (&variable, &index) in asked.parameters.iter().zip(indices.iter()) {
            let code = match operation.parameter(variable) {
                Parameter::Integer(value) => statement.bind_integer(index, value),
                Parameter::Boolean(value) => statement.bind_integer(index, value.into()),
                Parameter::Real(value) => statement.bind_real(index, value),
                Parameter::Null => statement.bind_null(index),
                Parameter::Text(text) => statement.bind_text(index, text),
                Parameter::Bytes(bytes) => statement.bind_bytes(index, bytes),
            };
            database.check(code)?;
        }
        let (columns, open) = (statement.columns(), asked.open);
        let mut captured = asked.into.as_ref().map(|_| Captured::default());
        if let Some(captured) = &mut captured {
            (0..columns).for_each(|column| captured.column(script, asked, &statement.column_name(column)));
        }
        let code = loop {
            match statement.step() {
                ffi::SQLITE_ROW if open => {
                    outcome
                        .opened_row(|vault, row| put_row(statement, columns, row, |value, row| vault.put(value, row)));
                }
                ffi::SQLITE_ROW => {
                    hash_row(statement, columns, &mut self.row, outcome);
                    if let Some(captured) = &mut captured {
                        capture(statement, columns, captured, operation);
                    }
                }
                code => break code,
            }
        };
        let result = database.check(code);
        statement.reset();
        result?;
        if open && outcome.error.is_some() {
            return Err(Failure::statement("a sealed value does not open"));
        }
        captured.map_or(Ok(()), |captured| captured.end(asked))
    }

    #[cold]
    fn roll_back(&self) {
        if self.database.as_ref().is_some_and(|database| !database.in_autocommit()) {
            // If it fails, the operation's own error is the one to report, and the next BEGIN fails too.
            let _ = self.run("ROLLBACK");
        }
    }
}
