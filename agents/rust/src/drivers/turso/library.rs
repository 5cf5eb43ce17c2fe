//! A few safe calls around the C interface of Turso.

use super::ffi::{self, Code, Config, Functions, Handle, Words};
use crate::drivers::cells::{Cell, Row};
use crate::drivers::statements::Statement;
use crate::failure::{Failure, Result};
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// How long a connection waits for another one's write lock, as the driver of SQLite does.
const BUSY_MS: i64 = 10_000;

/// An open file. Turso has one of each file in a process, with its cache.
pub struct Database {
    functions: Functions,
    raw: Handle,
}

/// A connection to it.
pub struct Session {
    database: Arc<Database>,
    raw: Handle,
}

/// A prepared statement, which is dropped before its session.
pub struct Prepared {
    database: Arc<Database>,
    raw: Handle,
}

// SAFETY: Turso's databases may be used by many threads.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}
// SAFETY: one thread at a time uses a session and its statements.
unsafe impl Send for Session {}
// SAFETY: as for Session; its methods that change anything take `&mut self`.
unsafe impl Send for Prepared {}

impl fmt::Debug for Database {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Turso")
    }
}

impl Functions {
    /// Calls a function that leaves its error in its last argument, and returns its code or that error.
    fn call(&self, function: impl FnOnce(Words) -> Code) -> Result<Code> {
        let mut words = null();
        let code = function(&mut words);
        if matches!(code, ffi::OK | ffi::DONE | ffi::ROW) {
            return Ok(code);
        }
        // SAFETY: the text is Turso's own, and is freed once.
        Err(Failure::statement(unsafe { self.taken(words) }.unwrap_or_else(|| format!("Turso's status {code}"))))
    }

    /// Copies a text that Turso gave away, and frees it. Null: none.
    ///
    /// # Safety
    /// The pointer must be null, or Turso's and not yet freed.
    unsafe fn taken(&self, text: *const c_char) -> Option<String> {
        if text.is_null() {
            return None;
        }
        // SAFETY: not null, so by the caller's contract it ends with a zero byte and may be freed.
        unsafe {
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.turso_str_deinit)(text);
            Some(copy)
        }
    }
}

impl Database {
    /// Opens the file at `path`, with a cipher and a key in hexadecimal digits if it is encrypted.
    pub fn open(library: &str, path: &str, encryption: Option<(&str, &str)>) -> Result<Database> {
        let mut database = Database { functions: Functions::load(library)?, raw: null_mut() };
        let (path, (cipher, key)) = (text(path)?, encryption.unzip());
        let (cipher, key) = (cipher.map(text).transpose()?, key.map(text).transpose()?);
        let pointer = |given: &Option<CString>| given.as_ref().map_or(null(), |text| text.as_ptr());
        let config = Config {
            async_io: 0,
            path: path.as_ptr(),
            // Turso encrypts only if told so twice. Both arms have it.
            experimental_features: c"encryption".as_ptr(),
            vfs: null(),
            encryption_cipher: pointer(&cipher),
            encryption_hexkey: pointer(&key),
            page_codec: null(),
            open_flags: 0,
            later: [0; 8],
        };
        let functions = &database.functions;
        let mut raw = null_mut();
        // SAFETY: every text ends with a zero byte and outlives the call; the handle is freed when it is dropped.
        functions.call(|words| unsafe { (functions.turso_database_new)(&config, &mut raw, words) })?;
        database.raw = raw;
        let functions = &database.functions;
        // SAFETY: the handle is new.
        functions.call(|words| unsafe { (functions.turso_database_open)(database.raw, words) })?;
        Ok(database)
    }

    pub fn version(&self) -> String {
        // SAFETY: the text is static.
        unsafe { CStr::from_ptr((self.functions.turso_version)()) }.to_string_lossy().into_owned()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: no session is left, because each holds the database.
            unsafe { (self.functions.turso_database_deinit)(self.raw) };
        }
    }
}

impl Session {
    pub fn new(database: &Arc<Database>) -> Result<Session> {
        let mut session = Session { database: database.clone(), raw: null_mut() };
        let (functions, mut raw) = (&database.functions, null_mut());
        // SAFETY: the database is open; the handle is freed when it is dropped.
        functions.call(|words| unsafe { (functions.turso_database_connect)(database.raw, &mut raw, words) })?;
        session.raw = raw;
        // SAFETY: the session is open.
        unsafe { (functions.turso_connection_set_busy_timeout_ms)(raw, BUSY_MS) };
        Ok(session)
    }

    /// Prepares the first statement of a text, and returns what follows it. None: the text has no statement.
    pub fn prepare<'a>(&self, sql: &'a str) -> Result<(Option<Prepared>, &'a str)> {
        let (functions, begins) = (&self.database.functions, text(sql)?);
        let (mut raw, mut end) = (null_mut(), 0);
        // SAFETY: the session is open; the statement is freed when it is dropped.
        functions.call(|words| unsafe {
            (functions.turso_connection_prepare_first)(self.raw, begins.as_ptr(), &mut raw, &mut end, words)
        })?;
        if raw.is_null() {
            return Ok((None, ""));
        }
        Ok((Some(Prepared { database: self.database.clone(), raw }), sql.get(end..).unwrap_or("")))
    }

    pub fn in_autocommit(&self) -> bool {
        // SAFETY: the session is open.
        unsafe { (self.database.functions.turso_connection_get_autocommit)(self.raw) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.raw.is_null() {
            return;
        }
        let functions = &self.database.functions;
        // SAFETY: the handle is not used after this. An error leaves nothing to do: the handle is freed all the same.
        unsafe {
            // Nobody is left to be told, and what follows frees it in any case.
            let _ = functions.call(|words| (functions.turso_connection_close)(self.raw, words));
            (functions.turso_connection_deinit)(self.raw);
        }
    }
}

impl Prepared {
    #[inline]
    pub fn bind_integer(&mut self, index: usize, value: i64) -> bool {
        // SAFETY: the statement is alive; a wrong index returns an error.
        unsafe { (self.database.functions.turso_statement_bind_positional_int)(self.raw, index, value) == ffi::OK }
    }

    pub fn bind_real(&mut self, index: usize, value: f64) -> bool {
        // SAFETY: the statement is alive; a wrong index returns an error.
        unsafe { (self.database.functions.turso_statement_bind_positional_double)(self.raw, index, value) == ffi::OK }
    }

    pub fn bind_null(&mut self, index: usize) -> bool {
        // SAFETY: the statement is alive; a wrong index returns an error.
        unsafe { (self.database.functions.turso_statement_bind_positional_null)(self.raw, index) == ffi::OK }
    }

    /// Turso copies the text.
    #[inline]
    pub fn bind_text(&mut self, index: usize, value: &[u8]) -> bool {
        let bind = self.database.functions.turso_statement_bind_positional_text;
        // SAFETY: the length is the text's own.
        unsafe { bind(self.raw, index, value.as_ptr(), value.len()) == ffi::OK }
    }

    /// Turso copies the bytes.
    #[inline]
    pub fn bind_bytes(&mut self, index: usize, value: &[u8]) -> bool {
        let bind = self.database.functions.turso_statement_bind_positional_blob;
        // SAFETY: the length is the value's own.
        unsafe { bind(self.raw, index, value.as_ptr(), value.len()) == ffi::OK }
    }

    /// Whether there is a further row.
    #[inline]
    pub fn step(&mut self) -> Result<bool> {
        let functions = &self.database.functions;
        // SAFETY: the statement is alive.
        let code = functions.call(|words| unsafe { (functions.turso_statement_step)(self.raw, words) })?;
        Ok(code == ffi::ROW)
    }

    #[inline]
    pub fn reset(&mut self) -> Result<()> {
        let functions = &self.database.functions;
        // SAFETY: the statement is alive.
        functions.call(|words| unsafe { (functions.turso_statement_reset)(self.raw, words) }).map(drop)
    }
}

impl Statement for Prepared {
    type Index = usize;

    fn parameters(&self) -> usize {
        // SAFETY: the statement is alive.
        unsafe { (self.database.functions.turso_statement_parameters_count)(self.raw) as usize }
    }

    /// The index of the parameter `$number`.
    fn parameter(&self, number: usize) -> Option<usize> {
        let name = text(&format!("${number}")).ok()?;
        // SAFETY: the statement is alive and the name ends with a zero byte.
        let index = unsafe { (self.database.functions.turso_statement_named_position)(self.raw, name.as_ptr()) };
        usize::try_from(index).ok()
    }

    #[inline]
    fn columns(&self) -> usize {
        // SAFETY: the statement is alive.
        unsafe { (self.database.functions.turso_statement_column_count)(self.raw).max(0) as usize }
    }

    fn column_name(&self, column: usize) -> String {
        let functions = &self.database.functions;
        // SAFETY: the statement is alive, and the name is ours to free.
        unsafe { functions.taken((functions.turso_statement_column_name)(self.raw, column)) }.unwrap_or_default()
    }
}

impl Row for Prepared {
    #[inline]
    fn cell(&self, column: usize) -> Cell<'_> {
        let (functions, raw) = (&self.database.functions, self.raw);
        // SAFETY: the statement is on a row; bytes stay valid until the next step, which needs `&mut self`.
        unsafe {
            match (functions.turso_statement_row_value_kind)(raw, column) {
                ffi::INTEGER => Cell::Integer((functions.turso_statement_row_value_int)(raw, column)),
                ffi::REAL => Cell::Real((functions.turso_statement_row_value_double)(raw, column)),
                ffi::TEXT | ffi::BLOB => {
                    let bytes = (functions.turso_statement_row_value_bytes_ptr)(raw, column);
                    let length = (functions.turso_statement_row_value_bytes_count)(raw, column);
                    let empty = length <= 0 || bytes.is_null();
                    Cell::Bytes(if empty { &[] } else { std::slice::from_raw_parts(bytes, length as usize) })
                }
                _ => Cell::Null,
            }
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: the statement is not used after this.
        unsafe { (self.database.functions.turso_statement_deinit)(self.raw) };
    }
}

fn text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Failure::statement("the text contains a zero byte"))
}
