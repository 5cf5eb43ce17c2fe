//! Hashes a response's status and body as it passes, or keeps the body of a query.

use crate::connection::QUERY_LIMIT_BYTES;
use crate::failure::{Failure, Result};
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
    pub kept: Vec<u8>,
}

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
        }
    }

    /// Starts a body; the response's status is known.
    #[inline]
    pub fn seed(&mut self, status: u16) {
        self.status = status.into();
    }

    /// Takes a part. `last`: the body ends with it.
    #[inline]
    pub fn add(&mut self, part: &[u8], last: bool) -> Result<()> {
        if self.keep {
            if self.kept.len() + part.len() > QUERY_LIMIT_BYTES {
                return Err(Failure::statement("the body is longer than 16 MiB"));
            }
            self.kept.extend_from_slice(part);
        }
        if last && !self.passed {
            self.hash = xxh3_64_with_seed(part, self.status);
            return Ok(());
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
        Ok(())
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
