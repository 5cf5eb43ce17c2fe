//! The part of DuckDB's C interface that is used, found in a library that is loaded at run time. See `duckdb.h` of DuckDB 1.4.

use crate::drivers::loaded::functions;
use std::ffi::{c_char, c_void};

pub use crate::drivers::loaded::Handle;
/// `duckdb_state`: 0 is success.
pub type State = u32;

/// `duckdb_result`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    _deprecated: [u64; 3],
    _columns: Handle,
    _message: *mut c_char,
    _data: Handle,
}

impl Answer {
    pub const EMPTY: Answer = Answer {
        _deprecated: [0; 3],
        _columns: std::ptr::null_mut(),
        _message: std::ptr::null_mut(),
        _data: std::ptr::null_mut(),
    };
}

functions! {
    "DuckDB";
    duckdb_free: fn(Handle);
    duckdb_create_config: fn(*mut Handle) -> State;
    duckdb_set_config: fn(Handle, *const c_char, *const c_char) -> State;
    duckdb_destroy_config: fn(*mut Handle);
    duckdb_open_ext: fn(*const c_char, *mut Handle, Handle, *mut *mut c_char) -> State;
    duckdb_close: fn(*mut Handle);
    duckdb_connect: fn(Handle, *mut Handle) -> State;
    duckdb_disconnect: fn(*mut Handle);
    duckdb_query: fn(Handle, *const c_char, *mut Answer) -> State;
    duckdb_destroy_result: fn(*mut Answer);
    duckdb_result_error: fn(*mut Answer) -> *const c_char;
    duckdb_result_return_type: fn(Answer) -> u32;
    duckdb_column_count: fn(*mut Answer) -> u64;
    duckdb_column_name: fn(*mut Answer, u64) -> *const c_char;
    duckdb_row_count: fn(*mut Answer) -> u64;
    duckdb_value_varchar: fn(*mut Answer, u64, u64) -> *mut c_char;
    duckdb_prepare: fn(Handle, *const c_char, *mut Handle) -> State;
    duckdb_prepare_error: fn(Handle) -> *const c_char;
    duckdb_destroy_prepare: fn(*mut Handle);
    duckdb_nparams: fn(Handle) -> u64;
    duckdb_bind_int64: fn(Handle, u64, i64) -> State;
    duckdb_bind_double: fn(Handle, u64, f64) -> State;
    duckdb_bind_boolean: fn(Handle, u64, bool) -> State;
    duckdb_bind_null: fn(Handle, u64) -> State;
    duckdb_bind_varchar_length: fn(Handle, u64, *const c_char, u64) -> State;
    duckdb_bind_blob: fn(Handle, u64, *const c_void, u64) -> State;
    duckdb_execute_prepared: fn(Handle, *mut Answer) -> State;
    duckdb_fetch_chunk: fn(Answer) -> Handle;
    duckdb_destroy_data_chunk: fn(*mut Handle);
    duckdb_data_chunk_get_size: fn(Handle) -> u64;
    duckdb_data_chunk_get_column_count: fn(Handle) -> u64;
    duckdb_data_chunk_get_vector: fn(Handle, u64) -> Handle;
    duckdb_vector_get_column_type: fn(Handle) -> Handle;
    duckdb_vector_get_data: fn(Handle) -> Handle;
    duckdb_vector_get_validity: fn(Handle) -> *const u64;
    duckdb_get_type_id: fn(Handle) -> u32;
    duckdb_decimal_internal_type: fn(Handle) -> u32;
    duckdb_destroy_logical_type: fn(*mut Handle);
}
