//! program: messages -> what an operation is; and one operation drawn from it.

mod declared;
mod script;

pub use declared::Program;
pub use script::{Operation, Parameter, Script, Statement};
