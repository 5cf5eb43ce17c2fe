//! A few safe calls around the C interface of SQLite (and SQLCipher).

use super::ffi;
use crate::drivers::cells::{Cell, Row};
use crate::drivers::statements::Statement;
use crate::failure::{Failure, Result};
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::null_mut;

/// An open database. Its statements must be dropped before it.
#[derive(Debug)]
pub struct Database(*mut ffi::sqlite3);

// SAFETY: the library is built for threads, and only one thread at a time uses a connection.
unsafe impl Send for Database {}

/// A prepared statement.
#[derive(Debug)]
pub struct Prepared(*mut ffi::sqlite3_stmt);

// SAFETY: as for Database; a statement is used by one thread at a time because its methods take `&mut self`.
unsafe impl Send for Prepared {}

impl Database {
    pub fn open(path: &str) -> Result<Database> {
        let name = CString::new(path).map_err(|_| Failure::bad_message("path: contains a zero byte"))?;
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_NOMUTEX;
        let mut raw = null_mut();
        // SAFETY: the name ends with a zero byte; Drop closes the handle even if opening failed.
        let code = unsafe { ffi::sqlite3_open_v2(name.as_ptr(), &mut raw, flags, std::ptr::null()) };
        let database = Database(raw);
        database.check(code).map_err(|failure| Failure::connect(format!("{path}: {}", failure.text)))?;
        // SAFETY: the handle is open.
        unsafe {
            ffi::sqlite3_busy_timeout(database.0, 10_000);
            ffi::sqlite3_extended_result_codes(database.0, 1);
        }
        Ok(database)
    }

    /// Gives SQL two functions without arguments: how many pages this connection has read from its file, and written to it or to its
    /// WAL. SQLCipher decrypts and encrypts each of them.
    pub fn count_pages(&self) -> Result<()> {
        for (name, function) in [
            (c"ciphercost_pages_read", pages::<{ ffi::SQLITE_DBSTATUS_CACHE_MISS }> as ffi::Function),
            (c"ciphercost_pages_written", pages::<{ ffi::SQLITE_DBSTATUS_CACHE_WRITE }>),
        ] {
            // SAFETY: the name ends with a zero byte, and the function lives as long as the program.
            self.check(unsafe {
                let (utf8, data) = (ffi::SQLITE_UTF8, null_mut());
                ffi::sqlite3_create_function(self.0, name.as_ptr(), 0, utf8, data, Some(function), None, None)
            })?;
        }
        Ok(())
    }

    /// Reserves bytes at the end of each page of a database that reserves none yet.
    pub fn reserve(&self, bytes: u8) -> Result<()> {
        let mut bytes = c_int::from(bytes);
        let name = c"main";
        // SAFETY: this operation reads and writes one int.
        self.check(unsafe {
            ffi::sqlite3_file_control(self.0, name.as_ptr(), ffi::SQLITE_FCNTL_RESERVE_BYTES, (&raw mut bytes).cast())
        })
    }

    /// Prepares the first statement of `sql` and returns the rest. None: there is no statement.
    pub fn prepare<'s>(&self, sql: &'s str) -> Result<(Option<Prepared>, &'s str)> {
        let (mut raw, mut tail) = (null_mut(), std::ptr::null());
        let start = sql.as_ptr().cast();
        // SAFETY: the length is the text's own; `tail` points into the text.
        let rest = unsafe {
            let code = ffi::sqlite3_prepare_v3(self.0, start, sql.len() as c_int, PERSISTENT, &mut raw, &mut tail);
            self.check(code)?;
            if tail.is_null() { "" } else { &sql[tail.offset_from(start) as usize..] }
        };
        Ok(((!raw.is_null()).then_some(Prepared(raw)), rest))
    }

    /// Whether every transaction is over.
    #[inline]
    pub fn in_autocommit(&self) -> bool {
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_get_autocommit(self.0) != 0 }
    }

    #[inline]
    pub fn check(&self, code: c_int) -> Result<()> {
        if matches!(code, ffi::SQLITE_OK | ffi::SQLITE_ROW | ffi::SQLITE_DONE) { Ok(()) } else { Err(self.error(code)) }
    }

    #[cold]
    fn error(&self, code: c_int) -> Failure {
        // SAFETY: both functions return static or connection-owned strings that end with a zero byte.
        let text = unsafe {
            let text = if self.0.is_null() { ffi::sqlite3_errstr(code) } else { ffi::sqlite3_errmsg(self.0) };
            CStr::from_ptr(text).to_string_lossy().into_owned()
        };
        Failure::statement(text)
    }
}

/// One of SQLite's counters of a connection.
unsafe extern "C" fn pages<const WHAT: c_int>(context: *mut ffi::sqlite3_context, _: c_int, _: *mut *mut c_void) {
    let (mut current, mut highest) = (0, 0);
    // SAFETY: SQLite calls this with a context that is alive, and its connection is open.
    unsafe {
        ffi::sqlite3_db_status(ffi::sqlite3_context_db_handle(context), WHAT, &mut current, &mut highest, 0);
        ffi::sqlite3_result_int64(context, i64::from(current));
    }
}

const PERSISTENT: u32 = ffi::SQLITE_PREPARE_PERSISTENT;

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: the handle is not used after this; close accepts null.
        unsafe { ffi::sqlite3_close(self.0) };
    }
}

impl Prepared {
    #[inline]
    pub fn bind_integer(&mut self, index: c_int, value: i64) -> c_int {
        // SAFETY: the statement is alive; a wrong index returns an error code.
        unsafe { ffi::sqlite3_bind_int64(self.0, index, value) }
    }

    pub fn bind_real(&mut self, index: c_int, value: f64) -> c_int {
        // SAFETY: the statement is alive; a wrong index returns an error code.
        unsafe { ffi::sqlite3_bind_double(self.0, index, value) }
    }

    pub fn bind_null(&mut self, index: c_int) -> c_int {
        // SAFETY: the statement is alive; a wrong index returns an error code.
        unsafe { ffi::sqlite3_bind_null(self.0, index) }
    }

    /// SQLite copies the text.
    #[inline]
    pub fn bind_text(&mut self, index: c_int, value: &[u8]) -> c_int {
        // SAFETY: the length is the text's own and `transient` makes SQLite copy it before the call returns.
        unsafe {
            let length = value.len() as c_int;
            ffi::sqlite3_bind_text(self.0, index, value.as_ptr().cast(), length, ffi::transient())
        }
    }

    /// SQLite copies the bytes.
    #[inline]
    pub fn bind_bytes(&mut self, index: c_int, value: &[u8]) -> c_int {
        // SAFETY: the length is the value's own and `transient` makes SQLite copy it before the call returns.
        unsafe {
            let length = value.len() as c_int;
            ffi::sqlite3_bind_blob(self.0, index, value.as_ptr().cast(), length, ffi::transient())
        }
    }

    /// Runs up to the next row; SQLITE_ROW, SQLITE_DONE or an error's code.
    #[inline]
    pub fn step(&mut self) -> c_int {
        // SAFETY: the statement is alive.
        unsafe { ffi::sqlite3_step(self.0) }
    }

    #[inline]
    pub fn reset(&mut self) {
        // SAFETY: the statement is alive. The code repeats the last step's, which the caller has seen.
        unsafe { ffi::sqlite3_reset(self.0) };
    }
}

impl Statement for Prepared {
    type Index = c_int;

    fn parameters(&self) -> usize {
        // SAFETY: the statement is alive.
        unsafe { ffi::sqlite3_bind_parameter_count(self.0) as usize }
    }

    /// The number of the parameter `$1`, `$2`…: SQLite numbers them in order of appearance.
    fn parameter(&self, number: usize) -> Option<c_int> {
        let name = CString::new(format!("${number}")).expect("digits have no zero byte");
        // SAFETY: the statement is alive and the name ends with a zero byte.
        match unsafe { ffi::sqlite3_bind_parameter_index(self.0, name.as_ptr()) } {
            0 => None,
            index => Some(index),
        }
    }

    #[inline]
    fn columns(&self) -> usize {
        // SAFETY: the statement is alive.
        unsafe { ffi::sqlite3_column_count(self.0) as usize }
    }

    fn column_name(&self, column: usize) -> String {
        // SAFETY: the statement is alive; the name is copied at once.
        unsafe {
            let name = ffi::sqlite3_column_name(self.0, column as c_int);
            if name.is_null() { String::new() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
        }
    }
}

impl Row for Prepared {
    #[inline]
    fn cell(&self, column: usize) -> Cell<'_> {
        let column = column as c_int;
        // SAFETY: the statement is on a row; bytes stay valid until the next step, which needs `&mut self`.
        unsafe {
            match ffi::sqlite3_column_type(self.0, column) {
                ffi::SQLITE_INTEGER => Cell::Integer(ffi::sqlite3_column_int64(self.0, column)),
                ffi::SQLITE_FLOAT => Cell::Real(ffi::sqlite3_column_double(self.0, column)),
                ffi::SQLITE_NULL => Cell::Null,
                _ => {
                    let bytes = ffi::sqlite3_column_blob(self.0, column);
                    let length = ffi::sqlite3_column_bytes(self.0, column) as usize;
                    let empty = length == 0 || bytes.is_null();
                    Cell::Bytes(if empty { &[] } else { std::slice::from_raw_parts(bytes.cast(), length) })
                }
            }
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: the statement is not used after this.
        unsafe { ffi::sqlite3_finalize(self.0) };
    }
}
