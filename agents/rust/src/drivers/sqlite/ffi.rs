//! The part of SQLite's C interface that the agent calls, as in `sqlite3.h`. `build.rs` compiles the library.

#![allow(non_camel_case_types)] // SQLite's own names.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// A database connection; only ever behind a pointer.
#[repr(C)]
#[derive(Debug)]
pub struct sqlite3 {
    _private: [u8; 0],
}

/// A prepared statement; only ever behind a pointer.
#[repr(C)]
#[derive(Debug)]
pub struct sqlite3_stmt {
    _private: [u8; 0],
}

/// The call of an SQL function; only ever behind a pointer.
#[repr(C)]
#[derive(Debug)]
pub struct sqlite3_context {
    _private: [u8; 0],
}

/// A function that SQL can call; the pointers are its context and its arguments.
pub type Function = unsafe extern "C" fn(*mut sqlite3_context, c_int, *mut *mut c_void);

/// Frees a bound value.
pub type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

pub const SQLITE_OK: c_int = 0;
pub const SQLITE_ROW: c_int = 100;
pub const SQLITE_DONE: c_int = 101;

pub const SQLITE_OPEN_READWRITE: c_int = 0x0000_0002;
pub const SQLITE_OPEN_CREATE: c_int = 0x0000_0004;
pub const SQLITE_OPEN_NOMUTEX: c_int = 0x0000_8000;
pub const SQLITE_FCNTL_RESERVE_BYTES: c_int = 38;
pub const SQLITE_UTF8: c_int = 1;
/// Pages that a connection's cache did not have, and pages that it has written.
pub const SQLITE_DBSTATUS_CACHE_MISS: c_int = 8;
pub const SQLITE_DBSTATUS_CACHE_WRITE: c_int = 9;
pub const SQLITE_PREPARE_PERSISTENT: c_uint = 0x01;

pub const SQLITE_INTEGER: c_int = 1;
pub const SQLITE_FLOAT: c_int = 2;
pub const SQLITE_NULL: c_int = 5;

/// `SQLITE_TRANSIENT`, the pointer -1: SQLite copies a bound value before the call returns.
#[inline]
pub fn transient() -> Destructor {
    // SAFETY: SQLite compares this value with -1 and never calls it.
    Some(unsafe { std::mem::transmute::<isize, unsafe extern "C" fn(*mut c_void)>(-1) })
}

unsafe extern "C" {
    pub fn sqlite3_open_v2(name: *const c_char, database: *mut *mut sqlite3, flags: c_int, vfs: *const c_char)
    -> c_int;
    pub fn sqlite3_close(database: *mut sqlite3) -> c_int;
    pub fn sqlite3_busy_timeout(database: *mut sqlite3, milliseconds: c_int) -> c_int;
    pub fn sqlite3_extended_result_codes(database: *mut sqlite3, on: c_int) -> c_int;
    pub fn sqlite3_file_control(database: *mut sqlite3, name: *const c_char, what: c_int, value: *mut c_void) -> c_int;
    pub fn sqlite3_get_autocommit(database: *mut sqlite3) -> c_int;
    pub fn sqlite3_errmsg(database: *mut sqlite3) -> *const c_char;
    pub fn sqlite3_errstr(code: c_int) -> *const c_char;

    pub fn sqlite3_create_function(
        database: *mut sqlite3,
        name: *const c_char,
        arguments: c_int,
        encoding: c_int,
        data: *mut c_void,
        function: Option<Function>,
        step: Option<Function>,
        last: Option<unsafe extern "C" fn(*mut sqlite3_context)>,
    ) -> c_int;
    pub fn sqlite3_context_db_handle(context: *mut sqlite3_context) -> *mut sqlite3;
    pub fn sqlite3_result_int64(context: *mut sqlite3_context, value: i64);
    pub fn sqlite3_db_status(
        database: *mut sqlite3,
        what: c_int,
        current: *mut c_int,
        highest: *mut c_int,
        reset: c_int,
    ) -> c_int;

    pub fn sqlite3_prepare_v3(
        database: *mut sqlite3,
        sql: *const c_char,
        length: c_int,
        flags: c_uint,
        statement: *mut *mut sqlite3_stmt,
        tail: *mut *const c_char,
    ) -> c_int;
    pub fn sqlite3_finalize(statement: *mut sqlite3_stmt) -> c_int;
    pub fn sqlite3_step(statement: *mut sqlite3_stmt) -> c_int;
    pub fn sqlite3_reset(statement: *mut sqlite3_stmt) -> c_int;

    pub fn sqlite3_bind_parameter_count(statement: *mut sqlite3_stmt) -> c_int;
    pub fn sqlite3_bind_parameter_index(statement: *mut sqlite3_stmt, name: *const c_char) -> c_int;
    pub fn sqlite3_bind_int64(statement: *mut sqlite3_stmt, index: c_int, value: i64) -> c_int;
    pub fn sqlite3_bind_double(statement: *mut sqlite3_stmt, index: c_int, value: f64) -> c_int;
    pub fn sqlite3_bind_null(statement: *mut sqlite3_stmt, index: c_int) -> c_int;
    pub fn sqlite3_bind_text(
        statement: *mut sqlite3_stmt,
        index: c_int,
        text: *const c_char,
        length: c_int,
        free: Destructor,
    ) -> c_int;
    pub fn sqlite3_bind_blob(
        statement: *mut sqlite3_stmt,
        index: c_int,
        bytes: *const c_void,
        length: c_int,
        free: Destructor,
    ) -> c_int;

    pub fn sqlite3_column_count(statement: *mut sqlite3_stmt) -> c_int;
    pub fn sqlite3_column_name(statement: *mut sqlite3_stmt, column: c_int) -> *const c_char;
    pub fn sqlite3_column_type(statement: *mut sqlite3_stmt, column: c_int) -> c_int;
    pub fn sqlite3_column_int64(statement: *mut sqlite3_stmt, column: c_int) -> i64;
    pub fn sqlite3_column_double(statement: *mut sqlite3_stmt, column: c_int) -> f64;
    pub fn sqlite3_column_blob(statement: *mut sqlite3_stmt, column: c_int) -> *const c_void;
    pub fn sqlite3_column_bytes(statement: *mut sqlite3_stmt, column: c_int) -> c_int;
}
