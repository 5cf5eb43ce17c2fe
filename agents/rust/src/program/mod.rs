//! Declares what an operation is, and draws operations.

mod captured;
mod declared;
mod expression;
mod flow;
mod operation;
mod script;

pub use captured::Captured;
pub use declared::Program;
pub use expression::scalar::Room;
pub use flow::Step;
pub use operation::{Operation, Parameter};
pub use script::{IntoVariables, Next, Script, Statement};
