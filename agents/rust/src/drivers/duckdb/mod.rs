//! Runs statements on DuckDB, whose library is loaded at run time: both arms use the same one, and only the key differs.

mod ffi;
mod library;

use super::embedded::{self, Embedded};
use crate::arm::Opened;
use crate::connection::{Outcome, QUERY_LIMIT_BYTES, Rows, escape};
use crate::failure::{Failure, Result};
use crate::message::{self, Connected};
use crate::program::{Captured, Operation, Parameter, Script, Statement};
use crate::xxh3::xxh3_64;
use library::{Instance, Prepared, Session};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The database's name in SQL.
const NAME: &str = "arm";

/// Nothing is fetched, and no extension is loaded unless it was asked for.
const ALONE: [(&str, &str); 2] = [("autoinstall_known_extensions", "false"), ("autoload_known_extensions", "false")];

pub fn connect(pool: &message::Pool, asked: &message::DuckDb) -> Result<Opened> {
    let asked = Arc::new(asked.clone());
    embedded::connect(pool, || DuckDb { asked: asked.clone(), statements: Vec::new(), session: None, row: Vec::new() })
}

/// Instances in use. All connections of a process to a file share one, because it has the file's cache and locks.
static INSTANCES: Mutex<Vec<(Arc<message::DuckDb>, Weak<Instance>)>> = Mutex::new(Vec::new());

fn instance(asked: &Arc<message::DuckDb>) -> Result<Arc<Instance>> {
    let mut instances = INSTANCES.lock().unwrap_or_else(PoisonError::into_inner);
    instances.retain(|(_, instance)| instance.strong_count() > 0);
    if let Some(found) = instances.iter().filter(|(known, _)| known == asked).find_map(|(_, known)| known.upgrade()) {
        return Ok(found);
    }
    let instance = Arc::new(Instance::open(&asked.library, &ALONE)?);
    let session = Session::new(&instance)?;
    let failed = |failure: Failure| Failure::connect(format!("{}: {}", asked.path, failure.text));
    if let Some(extension) = &asked.extension {
        session.run(&format!("LOAD {}", quoted(extension))).map_err(failed)?;
    }
    // Where DuckDB puts them for a database that is opened in the first place, not attached.
    session.run(&format!("SET temp_directory = {}", quoted(&format!("{}.tmp", asked.path)))).map_err(failed)?;
    if let Some(pragmas) = &asked.pragmas {
        session.run(pragmas).map_err(failed)?;
    }
    let mut options = String::new();
    if let Some(key) = &asked.key {
        let cipher = asked.cipher.as_deref().unwrap_or("GCM");
        options = format!(" (ENCRYPTION_KEY {}, ENCRYPTION_CIPHER {})", quoted(key), quoted(cipher));
    }
    session.run(&format!("ATTACH {} AS {NAME}{options}", quoted(&asked.path))).map_err(|failure| {
        // DuckDB's message may repeat the statement, and with it the key.
        let text = failure.text.replace(asked.key.as_deref().unwrap_or("\0"), "…");
        Failure::connect(format!("{}: {text}", asked.path))
    })?;
    instances.push((asked.clone(), Arc::downgrade(&instance)));
    Ok(instance)
}

/// A literal of SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

struct DuckDb {
    asked: Arc<message::DuckDb>,
    // Before `session`: statements are dropped first.
    statements: Vec<Prepared>,
    session: Option<Session>,
    row: Vec<u8>,
}

impl DuckDb {
    fn session(&self) -> Result<&Session> {
        self.session.as_ref().ok_or_else(|| Failure::connect("the database is closed"))
    }

    fn fact(&self, sql: &str) -> Result<String> {
        self.run(sql).map(|rows| rows.text)
    }

    /// What the library lists of the open database.
    fn listed(&self, column: &str) -> Result<String> {
        self.fact(&format!("SELECT {column} FROM duckdb_databases() WHERE database_name = {}", quoted(NAME)))
    }

    fn is_encrypted(&self) -> Result<bool> {
        Ok(self.listed("encrypted")? == "true")
    }
}

impl Embedded for DuckDb {
    fn open(&mut self) -> Result<()> {
        let session = Session::new(&instance(&self.asked)?)?;
        session.run(&format!("USE {NAME}"))?;
        self.session = Some(session);
        Ok(())
    }

    fn close(&mut self) {
        self.statements.clear();
        self.session = None;
    }

    fn facts(&self) -> Result<Connected> {
        let encrypted = self.is_encrypted()?;
        let loaded =
            self.fact("SELECT extension_name FROM duckdb_extensions() WHERE loaded AND extension_name = 'httpfs'")?;
        let version = self.fact("SELECT version()")?.trim_start_matches('v').to_string();
        let mut connected = Connected {
            encrypted,
            library: format!("DuckDB {version}, {}", if loaded.is_empty() { "Mbed TLS" } else { "OpenSSL of httpfs" }),
            server_version: version,
            ..Connected::default()
        };
        if encrypted {
            connected.protocol = "duckdb".into();
            connected.cipher = format!("AES-256-{}", self.listed("cipher")?);
        }
        Ok(connected)
    }

    fn check(&self) -> Result<()> {
        let encrypted = self.is_encrypted()?;
        if encrypted != self.asked.key.is_some() {
            return Err(Failure::connect(format!("{}: is not as asked: encrypted is {encrypted}", self.asked.path)));
        }
        Ok(())
    }

    fn run(&self, sql: &str) -> Result<Rows> {
        if sql.trim().is_empty() {
            return Ok(Rows::default());
        }
        let mut found = self.session()?.run(sql)?;
        let columns = found.columns();
        let names: Vec<String> = (0..columns).map(|column| found.column_name(column)).collect();
        let mut answer = Rows { columns: names.join("\t"), ..Rows::default() };
        for row in 0..found.rows() {
            if answer.rows > 0 {
                answer.text.push('\n');
            }
            answer.rows += 1;
            for column in 0..columns {
                if column > 0 {
                    answer.text.push('\t');
                }
                match found.text(column, row) {
                    None => answer.text.push_str("\\N"),
                    Some(value) => escape(&value, &mut answer.text),
                }
            }
            if answer.text.len() > QUERY_LIMIT_BYTES {
                return Err(Failure::statement("the answer is longer than 16 MiB"));
            }
        }
        Ok(answer)
    }

    fn prepare(&mut self, script: &Script) -> Result<()> {
        self.statements.clear();
        for statement in &script.statements {
            if statement.open {
                return Err(Failure::statement("the duckdb driver opens no sealed values"));
            }
            let prepared = self.session()?.prepare(&statement.sql)?;
            if prepared.parameters() != statement.parameters.len() {
                let (has, given) = (prepared.parameters(), statement.parameters.len());
                return Err(Failure::statement(format!("{}: has {has} parameters, {given} given", statement.sql)));
            }
            self.statements.push(prepared);
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
        let (asked, statement) = (&script.statements[number], &mut self.statements[number]);
        for (number, &variable) in (1..).zip(&asked.parameters) {
            let bound = match operation.parameter(variable) {
                Parameter::Integer(value) => statement.bind_integer(number, value),
                Parameter::Real(value) => statement.bind_real(number, value),
                Parameter::Boolean(value) => statement.bind_boolean(number, value),
                Parameter::Null => statement.bind_null(number),
                Parameter::Text(text) => statement.bind_text(number, text),
                Parameter::Bytes(bytes) => statement.bind_bytes(number, bytes),
            };
            if !bound {
                return Err(Failure::statement(format!("DuckDB takes no value for ${number}")));
            }
        }
        let mut rows = statement.run()?;
        if asked.into.is_some() {
            return capture(script, asked, &mut rows, operation, outcome);
        }
        rows.each(&mut self.row, |row| outcome.row(xxh3_64(row)))
    }

    #[cold]
    fn roll_back(&self) {
        // An error if no transaction is open.
        let _ = self.run("ROLLBACK");
    }
}

/// Puts the values of a statement's rows into variables; a row's checksum is that of its texts.
#[cold]
fn capture(
    script: &Script,
    statement: &Statement,
    rows: &mut library::Rows,
    operation: &mut Operation,
    outcome: &mut Outcome,
) -> Result<()> {
    let (mut captured, columns) = (Captured::default(), rows.columns());
    (0..columns).for_each(|column| captured.column(script, statement, &rows.column_name(column)));
    for row in 0..rows.rows() {
        captured.row();
        let mut texts = String::new();
        for column in 0..columns {
            let text = rows.text(column, row);
            captured.value(operation, column as usize, text.as_deref().map(str::as_bytes));
            texts.push('\t');
            escape(text.as_deref().unwrap_or("\0"), &mut texts);
        }
        outcome.row(xxh3_64(texts.as_bytes()));
    }
    captured.end(statement)
}
