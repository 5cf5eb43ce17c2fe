//! The part of Turso's C interface that is used, found in a library that is loaded at run time. See `turso.h` of Turso 0.8.

use crate::drivers::loaded::functions;
use std::ffi::{c_char, c_void};

pub use crate::drivers::loaded::Handle;

/// `turso_status_code_t`.
pub type Code = i32;
pub const OK: Code = 0;
pub const DONE: Code = 1;
pub const ROW: Code = 2;

/// `turso_type_t`.
pub const INTEGER: i32 = 1;
pub const REAL: i32 = 2;
pub const TEXT: i32 = 3;
pub const BLOB: i32 = 4;

/// Where a function leaves its error, which is Turso's own to free.
pub type Words = *mut *const c_char;

/// `turso_database_config_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Config {
    /// 0: a call returns when its I/O is done.
    pub async_io: u64,
    pub path: *const c_char,
    pub experimental_features: *const c_char,
    pub vfs: *const c_char,
    pub encryption_cipher: *const c_char,
    pub encryption_hexkey: *const c_char,
    pub page_codec: *const c_void,
    pub open_flags: u32,
    /// For fields that a later version adds: zero is their default.
    pub later: [u64; 8],
}

functions! {
    "Turso";
    turso_version: fn() -> *const c_char;
    turso_str_deinit: fn(*const c_char);
    turso_database_new: fn(*const Config, *mut Handle, Words) -> Code;
    turso_database_open: fn(Handle, Words) -> Code;
    turso_database_deinit: fn(Handle);
    turso_database_connect: fn(Handle, *mut Handle, Words) -> Code;
    turso_connection_set_busy_timeout_ms: fn(Handle, i64);
    turso_connection_get_autocommit: fn(Handle) -> bool;
    turso_connection_prepare_first: fn(Handle, *const c_char, *mut Handle, *mut usize, Words) -> Code;
    turso_connection_close: fn(Handle, Words) -> Code;
    turso_connection_deinit: fn(Handle);
    turso_statement_step: fn(Handle, Words) -> Code;
    turso_statement_reset: fn(Handle, Words) -> Code;
    turso_statement_deinit: fn(Handle);
    turso_statement_parameters_count: fn(Handle) -> i64;
    turso_statement_named_position: fn(Handle, *const c_char) -> i64;
    turso_statement_bind_positional_null: fn(Handle, usize) -> Code;
    turso_statement_bind_positional_int: fn(Handle, usize, i64) -> Code;
    turso_statement_bind_positional_double: fn(Handle, usize, f64) -> Code;
    turso_statement_bind_positional_blob: fn(Handle, usize, *const u8, usize) -> Code;
    turso_statement_bind_positional_text: fn(Handle, usize, *const u8, usize) -> Code;
    turso_statement_column_count: fn(Handle) -> i64;
    turso_statement_column_name: fn(Handle, usize) -> *const c_char;
    turso_statement_row_value_kind: fn(Handle, usize) -> i32;
    turso_statement_row_value_int: fn(Handle, usize) -> i64;
    turso_statement_row_value_double: fn(Handle, usize) -> f64;
    turso_statement_row_value_bytes_ptr: fn(Handle, usize) -> *const u8;
    turso_statement_row_value_bytes_count: fn(Handle, usize) -> i64;
}
