//! Expressions of pgbench's scripts: what a variable is set to, and what a branch depends on.

mod functions;
mod hashes;
mod read;
pub mod scalar;
#[cfg(test)]
mod tests;

pub use scalar::Scalar;

use crate::draw::Random;
use crate::failure::{Failure, Result};
use functions::Function;

/// An expression as a tree.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Constant(Scalar),
    /// The number of a variable.
    Variable(usize),
    Call(Function, Vec<Expression>),
    And(Box<[Expression; 2]>),
    Or(Box<[Expression; 2]>),
    /// Conditions and values in turn; the last value is that of `else`.
    Case(Vec<Expression>),
}

/// The values that an expression reads.
pub trait Variables {
    /// An error if the variable has no value yet.
    fn scalar(&self, variable: usize) -> Result<Scalar>;
}

impl Expression {
    /// Parses the text of a message. `find` returns a variable's number by its name.
    pub fn read(text: &str, find: &dyn Fn(&str) -> Option<usize>) -> Result<Expression> {
        read::read(text, find)
    }

    /// Its value. As in pgbench, `case`, `and` and `or` evaluate only what decides them.
    pub fn evaluate(&self, variables: &dyn Variables, random: &mut Random) -> Result<Scalar> {
        match self {
            Expression::Constant(value) => Ok(*value),
            Expression::Variable(number) => variables.scalar(*number),
            Expression::And(sides) => decide(sides, false, variables, random),
            Expression::Or(sides) => decide(sides, true, variables, random),
            Expression::Case(parts) => {
                for pair in parts.chunks(2) {
                    let [condition, value] = pair else { return pair[0].evaluate(variables, random) };
                    if condition.evaluate(variables, random)?.is_true() {
                        return value.evaluate(variables, random);
                    }
                }
                Ok(Scalar::Null)
            }
            Expression::Call(function, given) => {
                let mut values = [Scalar::Null; functions::MOST];
                if given.len() <= values.len() {
                    for (value, argument) in values.iter_mut().zip(given) {
                        *value = argument.evaluate(variables, random)?;
                    }
                    return function.call(&values[..given.len()], random);
                }
                let values: Result<Vec<Scalar>> =
                    given.iter().map(|argument| argument.evaluate(variables, random)).collect();
                function.call(&values?, random)
            }
        }
    }

    /// The variables that it reads, each as often as it does.
    pub fn variables(&self, see: &mut dyn FnMut(usize)) {
        match self {
            Expression::Constant(_) => {}
            Expression::Variable(number) => see(*number),
            Expression::And(sides) | Expression::Or(sides) => sides.iter().for_each(|side| side.variables(see)),
            Expression::Case(parts) | Expression::Call(_, parts) => parts.iter().for_each(|part| part.variables(see)),
        }
    }
}

/// `and` (ends with false) or `or` (ends with true) of two sides.
fn decide(sides: &[Expression; 2], ends_with: bool, variables: &dyn Variables, random: &mut Random) -> Result<Scalar> {
    let first = sides[0].evaluate(variables, random)?;
    if first == Scalar::Null {
        return Ok(Scalar::Null);
    }
    if first.boolean()? == ends_with {
        return Ok(Scalar::Boolean(ends_with));
    }
    match sides[1].evaluate(variables, random)? {
        Scalar::Null => Ok(Scalar::Null),
        second => second.boolean().map(Scalar::Boolean),
    }
}

fn out_of_range(what: &str) -> Failure {
    Failure::statement(format!("{what} out of range"))
}
