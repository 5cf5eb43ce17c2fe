//! For tests: slices that are cut at different moments of their operations.

use crate::arm::Arm;
use crate::load::{Plan, Tally};
use crate::program::Script;
use std::sync::Arc;

const SLICES: usize = 6;

/// Runs slices of different lengths until six of them have more than `least` operations each, and checks every one, by its
/// number and tally. On a busy machine a slice has fewer; then the next ones are twice as long.
pub fn cut_slices(arm: &mut dyn Arm, script: &Arc<Script>, plan: &Plan, least: u64, check: impl Fn(usize, &Tally)) {
    let (mut length_ns, mut full) = (150_000_000, 0);
    for slice in 0.. {
        let cut = Plan { length_ns, discard_ns: length_ns / 3, operations: None, ..plan.clone() };
        let tally = arm.slice(script, &cut, &mut || ()).unwrap().tally;
        assert_eq!(tally.errors, 0, "{}", tally.first_error);
        check(slice, &tally);
        if tally.operations > least {
            full += 1;
            length_ns += 1_000_000;
        } else {
            length_ns *= 2;
        }
        if full == SLICES {
            break;
        }
    }
}
