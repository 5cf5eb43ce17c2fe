//! A few safe calls around the C interface of DuckDB.

use super::ffi::{Answer, Functions, Handle};
use crate::failure::{Failure, Result};
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;

/// An instance of DuckDB within this process, with the files that are attached to it.
pub struct Instance {
    pub functions: Functions,
    raw: Handle,
}

/// A connection to an instance.
pub struct Session {
    instance: Arc<Instance>,
    raw: Handle,
}

/// A prepared statement, which is dropped before its session.
pub struct Prepared {
    instance: Arc<Instance>,
    raw: Handle,
}

/// The rows of a statement.
pub struct Rows {
    instance: Arc<Instance>,
    raw: Answer,
}

// SAFETY: DuckDB's instances may be used by many threads.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}
// SAFETY: one thread at a time uses a session and its statements.
unsafe impl Send for Session {}
// SAFETY: as for Session; its methods take `&mut self`.
unsafe impl Send for Prepared {}

impl fmt::Debug for Instance {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("DuckDB")
    }
}

impl Instance {
    /// An instance without a file of its own. `settings`: those that count from its start.
    pub fn open(library: &str, settings: &[(&str, &str)]) -> Result<Instance> {
        let mut instance = Instance { functions: Functions::load(library)?, raw: null_mut() };
        let (functions, mut config, mut message) = (&instance.functions, null_mut(), null_mut());
        // SAFETY: every text ends with a zero byte; the configuration is destroyed whatever happens.
        unsafe {
            (functions.duckdb_create_config)(&mut config);
            for (name, value) in settings {
                let (name, value) = (text(name)?, text(value)?);
                (functions.duckdb_set_config)(config, name.as_ptr(), value.as_ptr());
            }
            let state = (functions.duckdb_open_ext)(std::ptr::null(), &mut instance.raw, config, &mut message);
            (functions.duckdb_destroy_config)(&mut config);
            if state != 0 {
                let words = words(message);
                (functions.duckdb_free)(message.cast());
                return Err(Failure::connect(format!("DuckDB does not start: {words}")));
            }
        }
        Ok(instance)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: no session is left, because each holds the instance.
        unsafe { (self.functions.duckdb_close)(&mut self.raw) };
    }
}

impl Session {
    pub fn new(instance: &Arc<Instance>) -> Result<Session> {
        let mut session = Session { instance: instance.clone(), raw: null_mut() };
        // SAFETY: the instance is open.
        match unsafe { (instance.functions.duckdb_connect)(instance.raw, &mut session.raw) } {
            0 => Ok(session),
            _ => Err(Failure::connect("DuckDB has no room for a connection")),
        }
    }

    /// Runs statements separated by `;`; returns the rows of the last one.
    pub fn run(&self, sql: &str) -> Result<Rows> {
        let (sql, mut rows) = (text(sql)?, Rows { instance: self.instance.clone(), raw: Answer::EMPTY });
        // SAFETY: the session is open; the answer is destroyed when it is dropped, also after an error.
        match unsafe { (self.instance.functions.duckdb_query)(self.raw, sql.as_ptr(), &mut rows.raw) } {
            0 => Ok(rows),
            _ => Err(rows.error()),
        }
    }

    pub fn prepare(&self, sql: &str) -> Result<Prepared> {
        let (sql, mut prepared) = (text(sql)?, Prepared { instance: self.instance.clone(), raw: null_mut() });
        let functions = &self.instance.functions;
        // SAFETY: the session is open; the statement is destroyed when it is dropped, also after an error.
        unsafe {
            match (functions.duckdb_prepare)(self.raw, sql.as_ptr(), &mut prepared.raw) {
                0 => Ok(prepared),
                _ => Err(Failure::statement(words((functions.duckdb_prepare_error)(prepared.raw)))),
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the handle is not used after this.
        unsafe { (self.instance.functions.duckdb_disconnect)(&mut self.raw) };
    }
}

impl Prepared {
    pub fn parameters(&self) -> usize {
        // SAFETY: the statement is alive.
        unsafe { (self.instance.functions.duckdb_nparams)(self.raw) as usize }
    }

    /// Binds the parameter `$number`. `false`: there is none.
    #[inline]
    pub fn bind_integer(&mut self, number: usize, value: i64) -> bool {
        // SAFETY: the statement is alive; a wrong number returns an error.
        unsafe { (self.instance.functions.duckdb_bind_int64)(self.raw, number as u64, value) == 0 }
    }

    pub fn bind_real(&mut self, number: usize, value: f64) -> bool {
        // SAFETY: the statement is alive; a wrong number returns an error.
        unsafe { (self.instance.functions.duckdb_bind_double)(self.raw, number as u64, value) == 0 }
    }

    pub fn bind_boolean(&mut self, number: usize, value: bool) -> bool {
        // SAFETY: the statement is alive; a wrong number returns an error.
        unsafe { (self.instance.functions.duckdb_bind_boolean)(self.raw, number as u64, value) == 0 }
    }

    pub fn bind_null(&mut self, number: usize) -> bool {
        // SAFETY: the statement is alive; a wrong number returns an error.
        unsafe { (self.instance.functions.duckdb_bind_null)(self.raw, number as u64) == 0 }
    }

    /// DuckDB copies the text.
    #[inline]
    pub fn bind_text(&mut self, number: usize, value: &[u8]) -> bool {
        let (start, length) = (value.as_ptr().cast(), value.len() as u64);
        // SAFETY: the length is the text's own.
        unsafe { (self.instance.functions.duckdb_bind_varchar_length)(self.raw, number as u64, start, length) == 0 }
    }

    /// DuckDB copies the bytes.
    #[inline]
    pub fn bind_bytes(&mut self, number: usize, value: &[u8]) -> bool {
        let (start, length) = (value.as_ptr().cast(), value.len() as u64);
        // SAFETY: the length is the value's own.
        unsafe { (self.instance.functions.duckdb_bind_blob)(self.raw, number as u64, start, length) == 0 }
    }

    #[inline]
    pub fn run(&mut self) -> Result<Rows> {
        let mut rows = Rows { instance: self.instance.clone(), raw: Answer::EMPTY };
        // SAFETY: the statement is alive; the answer is destroyed when it is dropped.
        match unsafe { (self.instance.functions.duckdb_execute_prepared)(self.raw, &mut rows.raw) } {
            0 => Ok(rows),
            _ => Err(rows.error()),
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: the handle is not used after this.
        unsafe { (self.instance.functions.duckdb_destroy_prepare)(&mut self.raw) };
    }
}

impl Rows {
    #[cold]
    fn error(&mut self) -> Failure {
        // SAFETY: the answer is alive, and its text is copied at once.
        Failure::statement(unsafe { words((self.instance.functions.duckdb_result_error)(&mut self.raw)) })
    }

    pub fn columns(&mut self) -> u64 {
        // SAFETY: the answer is alive.
        unsafe { (self.instance.functions.duckdb_column_count)(&mut self.raw) }
    }

    pub fn column_name(&mut self, column: u64) -> String {
        // SAFETY: the answer is alive, and the name is copied at once.
        unsafe { words((self.instance.functions.duckdb_column_name)(&mut self.raw, column)) }
    }

    pub fn rows(&mut self) -> u64 {
        // SAFETY: the answer is alive.
        unsafe { (self.instance.functions.duckdb_row_count)(&mut self.raw) }
    }

    /// A value as text; None is NULL.
    pub fn text(&mut self, column: u64, row: u64) -> Option<String> {
        // SAFETY: the answer is alive; the text is a copy that is freed here.
        unsafe {
            let value = (self.instance.functions.duckdb_value_varchar)(&mut self.raw, column, row);
            let found = (!value.is_null()).then(|| words(value));
            (self.instance.functions.duckdb_free)(value.cast());
            found
        }
    }

    /// Passes every row to `take`, as the bytes of its values, each after its length. Fails at a type without a plain form.
    /// What an INSERT answers, the number of its rows, is none of its rows.
    #[inline]
    pub fn each(&mut self, row: &mut Vec<u8>, mut take: impl FnMut(&[u8])) -> Result<()> {
        let functions = &self.instance.functions;
        // SAFETY: the answer is alive.
        if unsafe { (functions.duckdb_result_return_type)(self.raw) } != HAS_ROWS {
            return Ok(());
        }
        loop {
            // SAFETY: the answer is alive; the chunk and its vectors live until the chunk is destroyed, below.
            unsafe {
                let mut chunk = (functions.duckdb_fetch_chunk)(self.raw);
                if chunk.is_null() {
                    return Ok(());
                }
                let columns: Result<Vec<Column>> = (0..(functions.duckdb_data_chunk_get_column_count)(chunk))
                    .map(|number| Column::of(functions, (functions.duckdb_data_chunk_get_vector)(chunk, number)))
                    .collect();
                if let Ok(columns) = &columns {
                    for at in 0..(functions.duckdb_data_chunk_get_size)(chunk) as usize {
                        row.clear();
                        for column in columns {
                            column.put(at, row);
                        }
                        take(row);
                    }
                }
                (functions.duckdb_destroy_data_chunk)(&mut chunk);
                columns?;
            }
        }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: the answer is not used after this.
        unsafe { (self.instance.functions.duckdb_destroy_result)(&mut self.raw) };
    }
}

/// A vector of a chunk: values of one size, or texts.
struct Column {
    data: *const u8,
    /// A bit for each value that is not NULL; null: none is.
    valid: *const u64,
    /// 0: texts and bytes.
    size: usize,
}

/// A text of up to this many bytes lies in its vector.
const INLINE_BYTES: usize = 12;

impl Column {
    /// # Safety
    /// The vector must be alive, as long as the column is used.
    unsafe fn of(functions: &Functions, vector: Handle) -> Result<Column> {
        // SAFETY: the vector is alive; its type is destroyed here.
        unsafe {
            let mut logical = (functions.duckdb_vector_get_column_type)(vector);
            let kind = match (functions.duckdb_get_type_id)(logical) {
                DECIMAL => (functions.duckdb_decimal_internal_type)(logical),
                kind => kind,
            };
            (functions.duckdb_destroy_logical_type)(&mut logical);
            let data = (functions.duckdb_vector_get_data)(vector).cast_const().cast();
            Ok(Column { data, valid: (functions.duckdb_vector_get_validity)(vector), size: size(kind)? })
        }
    }

    /// # Safety
    /// `at` must be within the vector.
    #[inline]
    unsafe fn put(&self, at: usize, row: &mut Vec<u8>) {
        // SAFETY: the vector has this value, in DuckDB's own format of its type.
        let bytes = unsafe {
            if !self.valid.is_null() && *self.valid.add(at / 64) >> (at % 64) & 1 == 0 {
                row.extend_from_slice(&u32::MAX.to_be_bytes());
                return;
            }
            if self.size > 0 {
                std::slice::from_raw_parts(self.data.add(at * self.size), self.size)
            } else {
                // Its length; then the text, or four bytes of it and a pointer.
                let value = self.data.add(at * 16);
                let length = value.cast::<u32>().read_unaligned() as usize;
                let start = if length <= INLINE_BYTES {
                    value.add(4)
                } else {
                    value.add(8).cast::<*const u8>().read_unaligned()
                };
                std::slice::from_raw_parts(start, length)
            }
        };
        row.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        row.extend_from_slice(bytes);
    }
}

/// `duckdb_result_type` of a statement that returns rows.
const HAS_ROWS: u32 = 3;

/// `duckdb_type`.
const DECIMAL: u32 = 19;

/// Bytes of a value of this type; 0: a text or bytes.
fn size(kind: u32) -> Result<usize> {
    Ok(match kind {
        // BOOLEAN, TINYINT, UTINYINT
        1 | 2 | 6 => 1,
        // SMALLINT, USMALLINT
        3 | 7 => 2,
        // INTEGER, UINTEGER, FLOAT, DATE
        4 | 8 | 10 | 13 => 4,
        // BIGINT, UBIGINT, DOUBLE, TIMESTAMP, TIME, TIMESTAMP_S, _MS and _NS
        5 | 9 | 11 | 12 | 14 | 20..=22 => 8,
        // INTERVAL, HUGEINT, UUID, UHUGEINT
        15 | 16 | 27 | 32 => 16,
        // VARCHAR, BLOB
        17 | 18 => 0,
        other => {
            return Err(Failure::statement(format!("a column of DuckDB's type {other}: cast it to a simple type")));
        }
    })
}

fn text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Failure::statement("the text contains a zero byte"))
}

/// # Safety
/// The pointer must be null or point to a text that ends with a zero byte.
unsafe fn words(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, so by the caller's contract it ends with a zero byte.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
