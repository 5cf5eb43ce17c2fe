//! Operators and functions, with the types, bounds and words for errors of pgbench 18 (its documentation, "Built-In Operators" and
//! "Built-In Functions").

use super::{Scalar, hashes, out_of_range};
use crate::draw::{Random, Zipf};
use crate::failure::{Failure, Result};

/// Arguments that most functions have at most.
pub const MOST: usize = 4;

macro_rules! functions {
    ($($variant:ident $name:literal $least:literal..=$most:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Function { $($variant,)* }

        impl Function {
            /// The function of that name, with the least and the largest number of its arguments.
            pub fn find(name: &str) -> Option<(Function, usize, usize)> {
                match name {
                    $($name => Some((Function::$variant, $least, $most)),)*
                    _ => None,
                }
            }
        }
    };
}

functions! {
    Add "+" 2..=2,
    Subtract "-" 2..=2,
    Multiply "*" 2..=2,
    Divide "/" 2..=2,
    Modulo "%" 2..=2,
    Equal "=" 2..=2,
    Unequal "<>" 2..=2,
    Less "<" 2..=2,
    LessOrEqual "<=" 2..=2,
    BitAnd "&" 2..=2,
    BitOr "|" 2..=2,
    BitXor "#" 2..=2,
    ShiftLeft "<<" 2..=2,
    ShiftRight ">>" 2..=2,
    Not "not" 1..=1,
    Is "is" 2..=2,
    Abs "abs" 1..=1,
    Debug "debug" 1..=1,
    Double "double" 1..=1,
    Exp "exp" 1..=1,
    Greatest "greatest" 1..=1000,
    HashFnv1a "hash_fnv1a" 2..=2,
    HashMurmur2 "hash_murmur2" 2..=2,
    Int "int" 1..=1,
    Least "least" 1..=1000,
    Ln "ln" 1..=1,
    Mod "mod" 2..=2,
    Permute "permute" 3..=3,
    Pi "pi" 0..=0,
    Pow "pow" 2..=2,
    RandomUniform "random" 2..=2,
    RandomExponential "random_exponential" 3..=3,
    RandomGaussian "random_gaussian" 3..=3,
    RandomZipfian "random_zipfian" 3..=3,
    Sqrt "sqrt" 1..=1,
}

/// What the parameter of `random_gaussian` must at least be.
const LEAST_DEVIATION: f64 = 2.0;

impl Function {
    /// Its value. NULL if any argument is, except for `is` and `debug`.
    pub fn call(self, given: &[Scalar], random: &mut Random) -> Result<Scalar> {
        use Function::*;
        match (self, given) {
            (Is, [value, wanted]) => return Ok(Scalar::Boolean(value == wanted)),
            (Debug, [value]) => return Ok(*value),
            _ => {}
        }
        if given.contains(&Scalar::Null) {
            return Ok(Scalar::Null);
        }
        match (self, given) {
            (Add | Subtract | Multiply | Divide | Modulo | Mod, [left, right]) => arithmetic(self, *left, *right),
            (Equal | Unequal | Less | LessOrEqual, [left, right]) => compare(self, *left, *right).map(Scalar::Boolean),
            (BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight, [left, right]) => {
                bits(self, left.integer()?, right.integer()?).map(Scalar::Integer)
            }
            (Not, [value]) => value.boolean().map(|value| Scalar::Boolean(!value)),
            (Abs, [Scalar::Real(value)]) => Ok(Scalar::Real(value.abs())),
            (Abs, [value]) => Ok(Scalar::Integer(value.integer()?.wrapping_abs())),
            (Int, [value]) => value.integer().map(Scalar::Integer),
            (Double, [value]) => value.real().map(Scalar::Real),
            (Exp, [value]) => Ok(Scalar::Real(value.real()?.exp())),
            (Ln, [value]) => Ok(Scalar::Real(value.real()?.ln())),
            (Sqrt, [value]) => Ok(Scalar::Real(value.real()?.sqrt())),
            (Pi, []) => Ok(Scalar::Real(std::f64::consts::PI)),
            (Pow, [base, exponent]) => Ok(Scalar::Real(base.real()?.powf(exponent.real()?))),
            (Greatest | Least, values) => extreme(self == Greatest, values),
            (HashFnv1a, [value, seed]) => Ok(Scalar::Integer(hashes::fnv1a(value.integer()?, seed.integer()?))),
            (HashMurmur2, [value, seed]) => Ok(Scalar::Integer(hashes::murmur2(value.integer()?, seed.integer()?))),
            (Permute, [value, size, seed]) => {
                let size = size.integer()?;
                if size <= 0 {
                    return Err(Failure::statement("permute size parameter must be greater than zero"));
                }
                Ok(Scalar::Integer(hashes::permute(value.integer()?, size, seed.integer()?)))
            }
            (RandomUniform | RandomExponential | RandomGaussian | RandomZipfian, [low, high, rest @ ..]) => {
                let shape = rest.first().map_or(Ok(0.0), |shape| shape.real())?;
                draw(self, low.integer()?, high.integer()?, shape, random).map(Scalar::Integer)
            }
            _ => Err(Failure::internal(format!("{self:?} with {} arguments", given.len()))),
        }
    }
}

fn arithmetic(function: Function, left: Scalar, right: Scalar) -> Result<Scalar> {
    use Function::*;
    let real = matches!(left, Scalar::Real(_)) || matches!(right, Scalar::Real(_));
    if real && !matches!(function, Modulo | Mod) {
        let (left, right) = (left.real()?, right.real()?);
        return Ok(Scalar::Real(match function {
            Add => left + right,
            Subtract => left - right,
            Multiply => left * right,
            _ => left / right,
        }));
    }
    let (left, right) = (left.integer()?, right.integer()?);
    let (result, what) = match function {
        Add => (left.checked_add(right), "bigint add"),
        Subtract => (left.checked_sub(right), "bigint sub"),
        Multiply => (left.checked_mul(right), "bigint mul"),
        _ if right == 0 => return Err(Failure::statement("division by zero")),
        Divide => (left.checked_div(right), "bigint div"),
        _ => (Some(left.wrapping_rem(right)), "bigint mod"),
    };
    result.map(Scalar::Integer).ok_or_else(|| out_of_range(what))
}

fn compare(function: Function, left: Scalar, right: Scalar) -> Result<bool> {
    use Function::*;
    if matches!(left, Scalar::Real(_)) || matches!(right, Scalar::Real(_)) {
        let (left, right) = (left.real()?, right.real()?);
        return Ok(match function {
            Equal => left == right,
            Unequal => left != right,
            Less => left < right,
            _ => left <= right,
        });
    }
    let (left, right) = (left.integer()?, right.integer()?);
    Ok(match function {
        Equal => left == right,
        Unequal => left != right,
        Less => left < right,
        _ => left <= right,
    })
}

/// A shift uses the low six bits of its distance, as processors do.
fn bits(function: Function, left: i64, right: i64) -> Result<i64> {
    use Function::*;
    Ok(match function {
        BitAnd => left & right,
        BitOr => left | right,
        BitXor => left ^ right,
        ShiftLeft => left.wrapping_shl(right as u32),
        _ => left.wrapping_shr(right as u32),
    })
}

/// The greatest or the least value: an integer if all are.
fn extreme(greatest: bool, values: &[Scalar]) -> Result<Scalar> {
    if values.iter().any(|value| matches!(value, Scalar::Real(_))) {
        let mut reals = values.iter().map(|value| value.real());
        let first = reals.next().unwrap_or(Ok(0.0))?;
        return reals
            .try_fold(first, |best, value| value.map(|value| if greatest { best.max(value) } else { best.min(value) }))
            .map(Scalar::Real);
    }
    let mut integers = values.iter().map(|value| value.integer());
    let first = integers.next().unwrap_or(Ok(0))?;
    integers
        .try_fold(first, |best, value| value.map(|value| if greatest { best.max(value) } else { best.min(value) }))
        .map(Scalar::Integer)
}

/// A random integer from `low` to `high`, by the distributions of pgbench's documentation.
fn draw(function: Function, low: i64, high: i64, shape: f64, random: &mut Random) -> Result<i64> {
    use Function::*;
    if low > high {
        return Err(Failure::statement("empty range given to random"));
    }
    let Some(values) = high.checked_sub(low).and_then(|range| range.checked_add(1)) else {
        return Err(Failure::statement("random range is too large"));
    };
    // Rounding may reach the end of the range, which is not in it.
    let at = |share: f64| low + ((values as f64 * share) as i64).clamp(0, values - 1);
    Ok(match function {
        RandomUniform => low + random.below(values as u64) as i64,
        RandomExponential => {
            if !(shape > 0.0 && shape.is_finite()) {
                return Err(Failure::statement(format!(
                    "exponential parameter must be greater than zero (not {shape})"
                )));
            }
            let cut = (-shape).exp();
            let uniform = 1.0 - random.share();
            at(-(cut + (1.0 - cut) * uniform).ln() / shape)
        }
        RandomGaussian => {
            if !(shape >= LEAST_DEVIATION && shape.is_finite()) {
                return Err(Failure::statement(format!(
                    "gaussian parameter must be at least {LEAST_DEVIATION:.6} (not {shape})"
                )));
            }
            at((normal_within(shape, random) + shape) / (2.0 * shape))
        }
        _ => {
            if !(shape > 0.0 && shape <= 1000.0) || shape == 1.0 {
                return Err(Failure::statement(format!(
                    "zipfian parameter must be above 0, at most 1000 and not 1 (not {shape})"
                )));
            }
            low + (Zipf::new(values as u64, shape).draw(random) as i64 - 1).min(values - 1)
        }
    })
}

/// A value of the standard normal distribution that lies within `±most` (Box and Muller 1958), drawn anew until it does.
fn normal_within(most: f64, random: &mut Random) -> f64 {
    loop {
        let radius = (-2.0 * (1.0 - random.share()).ln()).sqrt();
        let value = radius * (2.0 * std::f64::consts::PI * random.share()).sin();
        if (-most..most).contains(&value) {
            return value;
        }
    }
}
