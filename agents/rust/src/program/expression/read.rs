//! Parses an expression as it travels: `(+ (* :a 2) 1)`, operators and functions before their arguments.

use super::functions::Function;
use super::{Expression, Scalar};
use crate::failure::{Failure, Result};
use std::iter::Peekable;

/// Expressions within one another, at most.
const DEEPEST: usize = 200;

/// Parses the whole text. `find` returns a variable's number by its name.
pub fn read(text: &str, find: &dyn Fn(&str) -> Option<usize>) -> Result<Expression> {
    let mut words = words(text).peekable();
    let expression = one(&mut words, find, 0)?;
    match words.next() {
        None => Ok(expression),
        Some(word) => Err(bad(format!("{word:?} follows its end"))),
    }
}

fn bad(text: impl std::fmt::Display) -> Failure {
    Failure::bad_message(format!("expression: {text}"))
}

/// Parentheses, and the words between them and spaces.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(' ');
        let length = match rest.find([' ', '(', ')']) {
            Some(0) => 1,
            Some(at) => at,
            None => rest.len(),
        };
        let (word, after) = rest.split_at(length);
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

fn one<'a>(
    words: &mut Peekable<impl Iterator<Item = &'a str>>,
    find: &dyn Fn(&str) -> Option<usize>,
    depth: usize,
) -> Result<Expression> {
    if depth > DEEPEST {
        return Err(bad(format!("nested more than {DEEPEST} deep")));
    }
    let word = words.next().ok_or_else(|| bad("it ends too early"))?;
    match word {
        "(" => {
            let name = words.next().ok_or_else(|| bad("it ends too early"))?;
            let mut given = Vec::new();
            while words.peek().is_some_and(|word| *word != ")") {
                given.push(one(words, find, depth + 1)?);
            }
            words.next().ok_or_else(|| bad("a parenthesis is not closed"))?;
            call(name, given)
        }
        ")" => Err(bad("a parenthesis closes nothing")),
        "null" => Ok(Expression::Constant(Scalar::Null)),
        "true" => Ok(Expression::Constant(Scalar::Boolean(true))),
        "false" => Ok(Expression::Constant(Scalar::Boolean(false))),
        _ => match word.strip_prefix(':') {
            Some(name) => {
                let number = find(name).ok_or_else(|| bad(format!("no variable {name:?} is declared")))?;
                Ok(Expression::Variable(number))
            }
            None => constant(word).map(Expression::Constant).ok_or_else(|| bad(format!("{word:?} is no value"))),
        },
    }
}

/// A number: an integer unless it has a point or an exponent.
fn constant(word: &str) -> Option<Scalar> {
    if !word.contains(|letter: char| letter.is_ascii_digit()) {
        return None; // "inf" and "nan" would be numbers for Rust
    }
    if word.contains(['.', 'e', 'E']) {
        return word.parse().ok().map(Scalar::Real);
    }
    word.parse().ok().map(Scalar::Integer)
}

fn call(name: &str, given: Vec<Expression>) -> Result<Expression> {
    let count = given.len();
    let two =
        |given: Vec<Expression>| given.try_into().map_err(|_| bad(format!("{name} takes 2 arguments, not {count}")));
    match name {
        "and" => two(given).map(|sides| Expression::And(Box::new(sides))),
        "or" => two(given).map(|sides| Expression::Or(Box::new(sides))),
        "case" if count % 2 == 1 && count >= 3 => Ok(Expression::Case(given)),
        "case" => Err(bad("case takes conditions and values in turn, and the value of else")),
        _ => {
            let (function, least, most) =
                Function::find(name).ok_or_else(|| bad(format!("no function {name:?} is known")))?;
            if !(least..=most).contains(&count) {
                return Err(bad(format!("{name} takes {least} to {most} arguments, not {count}")));
            }
            Ok(Expression::Call(function, given))
        }
    }
}
