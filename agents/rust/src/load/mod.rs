//! Runs a plan on connections and times its operations.

mod arrivals;
mod gate;
mod hand;
mod loops;
mod plan;
mod poll;
mod polled;
mod run;
mod shared;
mod slot;
mod tally;
#[cfg(test)]
mod tests;
mod worker;

pub use hand::Hand;
pub use plan::Plan;
pub use run::run;
#[cfg(test)]
pub use tally::Tally;
pub use tally::Total;
