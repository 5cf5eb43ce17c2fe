//! A text that is never shown.

use serde::Deserialize;
use std::fmt;

/// A text that no debugging output shows.
#[derive(Clone, Default, Deserialize)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Secret")
    }
}
