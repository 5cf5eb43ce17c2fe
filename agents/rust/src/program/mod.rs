//! Declares what an operation is, and draws operations.

mod declared;
mod script;

pub use declared::Program;
pub use script::{Operation, Parameter, Script, Statement};
