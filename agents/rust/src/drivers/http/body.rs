//! Hashes a response's status and body as it passes, and keeps the beginning of a query's.

use crate::xxh3::{Xxh3, xxh3_64_with_seed};

#[derive(Default)]
pub struct Body {
    status: u64,
    /// Streaming; at least one part has passed.
    passed: bool,
    /// The hash so far. Reused.
    parts: Option<Box<Xxh3>>,
    /// XXH3-64 of the whole body with the status as seed.
    pub hash: u64,
    keep: bool,
    /// Its beginning.
    pub kept: Vec<u8>,
    /// Bytes of the whole body.
    pub length: u64,
    /// The beginning of its longest part: bytes that came without anything in between.
    pub stretch: Vec<u8>,
    /// Bytes of that part.
    longest: usize,
}

/// Bytes that a query keeps of a body; what follows is only counted.
pub const KEPT_BYTES: usize = 1 << 20;
const STRETCH_BYTES: usize = 1000;

impl std::fmt::Debug for Body {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Body({:016x})", self.hash)
    }
}

impl Body {
    #[inline]
    pub fn start(&mut self, keep: bool) {
        self.passed = false;
        self.keep = keep;
        if keep {
            self.kept.clear();
            self.stretch.clear();
            (self.length, self.longest) = (0, 0);
        }
    }

    /// Starts a body; the response's status is known.
    #[inline]
    pub fn seed(&mut self, status: u16) {
        self.status = status.into();
    }

    /// Takes a part. `last`: the body ends with it.
    #[inline]
    pub fn add(&mut self, part: &[u8], last: bool) {
        if self.keep {
            self.keep_some(part);
        }
        if last && !self.passed {
            self.hash = xxh3_64_with_seed(part, self.status);
            return;
        }
        if !self.passed {
            self.passed = true;
            let fresh = Xxh3::with_seed(self.status);
            match &mut self.parts {
                Some(parts) => **parts = fresh,
                none => *none = Some(Box::new(fresh)),
            }
        }
        if let Some(parts) = &mut self.parts {
            parts.update(part);
        }
        if last {
            self.finish();
        }
    }

    #[cold]
    fn keep_some(&mut self, part: &[u8]) {
        let room = KEPT_BYTES - self.kept.len();
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
        self.length += part.len() as u64;
        if part.len() > self.longest {
            self.longest = part.len();
            self.stretch.clear();
            self.stretch.extend_from_slice(&part[..part.len().min(STRETCH_BYTES)]);
        }
    }

    /// The body has ended.
    #[inline]
    pub fn finish(&mut self) {
        self.hash = match &self.parts {
            Some(parts) if self.passed => parts.digest(),
            _ => xxh3_64_with_seed(&[], self.status),
        };
    }
}
