use super::scalar::{Room, Scalar};
use super::{Expression, Variables};
use crate::draw::Random;
use crate::failure::Result;
use crate::program::Parameter;
use std::collections::HashMap;

/// No variable has a value except the first.
struct One(Scalar);

impl Variables for One {
    fn scalar(&self, variable: usize) -> Result<Scalar> {
        assert_eq!(variable, 0);
        Ok(self.0)
    }
}

fn read(text: &str) -> Result<Expression> {
    Expression::read(text, &|name| (name == "x").then_some(0))
}

fn value(text: &str) -> Result<Scalar> {
    read(text)?.evaluate(&One(Scalar::Integer(20)), &mut Random::of_operation(3, 7))
}

/// As it is written into a statement.
fn shown(value: Scalar) -> String {
    let parameter = match value {
        Scalar::Null => Parameter::Null,
        Scalar::Boolean(value) => Parameter::Boolean(value),
        Scalar::Integer(value) => Parameter::Integer(value),
        Scalar::Real(value) => Parameter::Real(value),
    };
    String::from_utf8(parameter.text(&mut Room::default()).unwrap_or(b"NULL").to_vec()).unwrap()
}

/// Values that pgbench 15 put into `SELECT :x` after `\\set x` to the same expression.
const OF_PGBENCH: &[(&str, &str)] = &[
    ("(hash_murmur2 5 7)", "7395858956932106968"),
    ("(hash_fnv1a -5 7)", "2136846252759775326"),
    ("(permute 3 10 5432)", "8"),
    ("(permute -9 6062 144228661502)", "4042"),
    ("(permute 9223372036854775807 9223372036854775807 1)", "7485801521101948831"),
    ("(/ 1.0 3)", "0.333333333333333"),
    ("1e20", "1e+20"),
    ("(+ 1e15 0.5)", "1e+15"),
    ("(/ 1e-5 3)", "3.33333333333333e-06"),
    ("0.0001", "0.0001"),
    ("(* 100000.0 10)", "1000000"),
    ("(+ (* (int 2.5) 10) (int 3.5))", "24"),
    ("(/ -7 2)", "-3"),
    ("(% -7 2)", "-1"),
    ("(% 7.5 2)", "0"),
    ("(and null (= (/ 1 0) 1))", "NULL"),
    ("(and false (= (/ 1 0) 1))", "false"),
    ("(or true (= (/ 1 0) 1))", "true"),
    ("(is null null)", "true"),
    ("(is 1 true)", "false"),
    ("(not null)", "NULL"),
    ("(# 5 3)", "6"),
    ("(<< 1 65)", "2"),
    ("(>> -8 1)", "-4"),
    ("(greatest 1 2.5 null)", "NULL"),
    ("(least 3 1 2)", "1"),
    ("(case 0 1 0.5 2 3)", "2"),
    ("(abs -2.5)", "2.5"),
    ("(pi)", "3.14159265358979"),
    ("(pow 2 10)", "1024"),
    ("(exp 1)", "2.71828182845905"),
    ("(= 2 2.0)", "true"),
    ("(debug 4)", "4"),
    ("(random 5 5)", "5"),
    ("(mod 9 4)", "1"),
    ("(sqrt 2)", "1.4142135623731"),
    ("(ln 10)", "2.30258509299405"),
    ("(double 3)", "3"),
];

#[test]
fn values_are_those_of_pgbench() {
    for (text, wanted) in OF_PGBENCH {
        assert_eq!(shown(value(text).unwrap()), *wanted, "{text}");
    }
    assert_eq!(value("(+ :x 1)").unwrap(), Scalar::Integer(21));
    assert_eq!(shown(value("(/ 1 0.0)").unwrap()), "Infinity");
    assert_eq!(shown(value("(ln -1)").unwrap()), "NaN");
}

#[test]
fn errors_are_those_of_pgbench() {
    for (text, wanted) in [
        ("(+ 9223372036854775807 1)", "bigint add out of range"),
        ("(- -9223372036854775807 2)", "bigint sub out of range"),
        ("(* 9223372036854775807 2)", "bigint mul out of range"),
        ("(/ -9223372036854775808 -1)", "bigint div out of range"),
        ("(/ 1 0)", "division by zero"),
        ("(% 1 0)", "division by zero"),
        ("(random 2 1)", "empty range given to random"),
        ("(random -9223372036854775807 9223372036854775807)", "random range is too large"),
        ("(+ true 1)", "cannot coerce boolean to int"),
        ("(and 1 true)", "cannot coerce int to boolean"),
        ("(int 1e30)", "double to int overflow for"),
        ("(permute 1 0 1)", "permute size parameter must be greater than zero"),
        ("(random_gaussian 1 2 1.5)", "gaussian parameter must be at least 2.000000"),
        ("(random_exponential 1 2 0)", "exponential parameter must be greater than zero"),
        ("(random_zipfian 1 2 1)", "zipfian parameter must be"),
    ] {
        let failure = value(text).unwrap_err();
        assert!(failure.code == "statement" && failure.text.starts_with(wanted), "{text}: {}", failure.text);
    }
}

#[test]
fn a_text_that_is_no_expression_is_refused() {
    let deep = format!("{}1{}", "(abs ".repeat(5000), ")".repeat(5000));
    for text in [
        "",
        "(",
        ")",
        "()",
        "(+ 1 2",
        "(+ 1 2))",
        "1 2",
        "(+ 1)",
        "(+ 1 2 3)",
        "(dance 1)",
        ":y",
        "x",
        "inf",
        "nan",
        "-",
        "9223372036854775808",
        "(case 1 2)",
        "(case 1)",
        "(and true)",
        "(pi 1)",
        deep.as_str(),
    ] {
        assert_eq!(read(text).unwrap_err().code, "bad-message", "{text:.60}");
    }
}

#[test]
fn random_integers_have_the_shape_of_their_distribution_and_stay_within_their_bounds() {
    let mut random = Random::of_operation(1, 2);
    let mut draw = |text: &str| -> HashMap<i64, f64> {
        let (expression, mut counts) = (read(text).unwrap(), HashMap::new());
        for _ in 0..50_000 {
            let drawn = expression.evaluate(&One(Scalar::Null), &mut random).unwrap().integer().unwrap();
            assert!((1..=10).contains(&drawn), "{text}: {drawn}");
            *counts.entry(drawn).or_insert(0.0) += 1.0 / 50_000.0;
        }
        counts
    };
    let near = |share: f64, wanted: f64| assert!((share - wanted).abs() < 0.015, "{share} instead of {wanted}");
    near(draw("(random 1 10)")[&4], 0.1);
    let exponential = draw("(random_exponential 1 10 2.5)");
    let weight = |number: f64| (1.0 - (-0.25_f64).exp()) * (-0.25 * (number - 1.0)).exp() / (1.0 - (-2.5_f64).exp());
    near(exponential[&1], weight(1.0));
    near(exponential[&5], weight(5.0));
    // The fifths of a normal distribution within 2.5 standard deviations: from 0 to half a deviation lie 0.1915 of 0.9876.
    let gaussian = draw("(random_gaussian 1 10 2.5)");
    near(gaussian[&5], 0.1915 / 0.9876);
    near(gaussian[&6], 0.1915 / 0.9876);
    near(gaussian[&1], (0.9938 - 0.9772) / 0.9876);
    let zipfian = draw("(random_zipfian 1 10 1.5)");
    let sum: f64 = (1..=10).map(|rank| f64::from(rank).powf(-1.5)).sum();
    near(zipfian[&1], 1.0 / sum);
    near(zipfian[&3], 3f64.powf(-1.5) / sum);
}

#[test]
fn a_permutation_meets_every_number_once() {
    for size in [1, 2, 3, 7, 8, 9, 100, 1000] {
        let mut places: Vec<i64> = (0..size).map(|number| super::hashes::permute(number, size, 42)).collect();
        places.sort_unstable();
        assert_eq!(places, (0..size).collect::<Vec<_>>());
    }
}

#[test]
fn texts_of_rows_are_values_as_pgbench_reads_them() {
    for (text, wanted) in [
        ("17", Some(Scalar::Integer(17))),
        (" -5 ", Some(Scalar::Integer(-5))),
        ("2.5", Some(Scalar::Real(2.5))),
        ("NULL", Some(Scalar::Null)),
        ("t", Some(Scalar::Boolean(true))),
        ("OFF", Some(Scalar::Boolean(false))),
        ("Ada", None),
        ("", None),
    ] {
        assert_eq!(Scalar::of_text(text.as_bytes()), wanted, "{text}");
    }
}
