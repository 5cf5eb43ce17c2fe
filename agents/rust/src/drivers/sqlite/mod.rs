//! Runs statements on SQLite or SQLCipher: one library, and only the key differs.

mod ffi;
mod library;

use super::embedded::{self, Embedded};
use crate::arm::Opened;
use crate::connection::{Outcome, QUERY_LIMIT_BYTES, Rows, escape};
use crate::failure::{Failure, Result};
use crate::message::{self, Connected};
use crate::program::{Captured, Operation, Parameter, Script};
use crate::xxh3::xxh3_64;
use library::{Cell, Database, Prepared};
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
        let (database, mut rest, mut answer) = (self.database()?, sql, Rows::default());
        while !rest.trim().is_empty() {
            let (prepared, tail) = database.prepare(rest)?;
            rest = tail;
            let Some(mut statement) = prepared else { continue };
            let columns = statement.columns();
            if columns > 0 {
                let names: Vec<String> = (0..columns).map(|column| statement.column_name(column)).collect();
                answer = Rows { columns: names.join("\t"), ..Rows::default() };
            }
            loop {
                let code = statement.step();
                database.check(code)?;
                if code != ffi::SQLITE_ROW {
                    break;
                }
                add_row(&statement, columns, &mut answer);
                if answer.text.len() > QUERY_LIMIT_BYTES {
                    return Err(Failure::statement("the answer is longer than 16 MiB"));
                }
            }
        }
        Ok(answer)
    }

    fn prepare(&mut self, script: &Script) -> Result<()> {
        self.statements.clear();
        for statement in &script.statements {
            let (prepared, rest) = self.database()?.prepare(&statement.sql)?;
            if !rest.trim_matches([' ', '\n', '\t', ';']).is_empty() {
                return Err(Failure::statement("a program's statement must be one statement"));
            }
            let Some(prepared) = prepared else { return Err(Failure::statement("a program's statement is empty")) };
            if prepared.parameters() != statement.parameters.len() {
                let (has, given) = (prepared.parameters(), statement.parameters.len());
                return Err(Failure::statement(format!("{}: has {has} parameters, {given} given", statement.sql)));
            }
            let missing = |number| Failure::statement(format!("{}: has no parameter ${number}", statement.sql));
            let indices = (1..=statement.parameters.len())
                .map(|number| prepared.parameter(number).ok_or_else(|| missing(number)))
                .collect::<Result<Vec<_>>>()?;
            self.statements.push((prepared, indices));
        }
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
            let _ = self.run("ROLLBACK");
        }
    }
}

/// Puts a row's values into variables.
#[cold]
fn capture(statement: &Prepared, columns: usize, captured: &mut Captured, operation: &mut Operation) {
    captured.row();
    for column in 0..columns {
        match statement.cell(column) {
            Cell::Null => captured.value(operation, column, None),
            Cell::Integer(value) => captured.value(operation, column, Some(value.to_string().as_bytes())),
            Cell::Real(value) => captured.value(operation, column, Some(value.to_string().as_bytes())),
            Cell::Bytes(bytes) => captured.value(operation, column, Some(bytes)),
        }
    }
}

/// Hashes a row.
#[inline]
fn hash_row(statement: &Prepared, columns: usize, row: &mut Vec<u8>, outcome: &mut Outcome) {
    row.clear();
    let as_it_is = |value: &[u8], row: &mut Vec<u8>| {
        row.extend_from_slice(value);
        Ok(())
    };
    if put_row(statement, columns, row, as_it_is).is_ok() {
        outcome.row(xxh3_64(row));
    }
    if row.capacity() > 1 << 20 {
        *row = Vec::new();
    }
}

/// A row in the format of PostgreSQL's DataRow: the number of columns, then each value's length and text. `put` appends a value's bytes.
#[inline]
fn put_row(
    statement: &Prepared,
    columns: usize,
    row: &mut Vec<u8>,
    mut put: impl FnMut(&[u8], &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    use std::io::Write;
    row.extend_from_slice(&(columns as u16).to_be_bytes());
    for column in 0..columns {
        let at = row.len();
        row.extend_from_slice(&[0; 4]);
        let length = match statement.cell(column) {
            Cell::Null => {
                row[at..].copy_from_slice(&u32::MAX.to_be_bytes());
                continue;
            }
            // Writing to a Vec can't fail.
            Cell::Integer(value) => write!(row, "{value}").map_or(0, |()| row.len() - at - 4),
            Cell::Real(value) => write!(row, "{value}").map_or(0, |()| row.len() - at - 4),
            Cell::Bytes(bytes) => {
                put(bytes, row)?;
                row.len() - at - 4
            }
        };
        row[at..at + 4].copy_from_slice(&(length as u32).to_be_bytes());
    }
    Ok(())
}

fn add_row(statement: &Prepared, columns: usize, rows: &mut Rows) {
    if rows.rows > 0 {
        rows.text.push('\n');
    }
    rows.rows += 1;
    for column in 0..columns {
        if column > 0 {
            rows.text.push('\t');
        }
        match statement.cell(column) {
            Cell::Null => rows.text.push_str("\\N"),
            Cell::Integer(value) => rows.text.push_str(&value.to_string()),
            Cell::Real(value) => rows.text.push_str(&value.to_string()),
            Cell::Bytes(bytes) => escape(&String::from_utf8_lossy(bytes), &mut rows.text),
        }
    }
}
