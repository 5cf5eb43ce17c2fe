//! The steps of a script that decides while it runs: what it computes, which statements it runs, and when it waits.

use super::expression::Expression;
use crate::failure::{Failure, Result};

/// A step as it is declared.
#[derive(Debug, Clone)]
pub enum Step {
    /// The number of a statement among those of the transaction.
    Run(usize),
    Set {
        variable: usize,
        to: Expression,
    },
    If(Expression),
    ElseIf(Expression),
    Else,
    EndIf,
    /// Its time in microseconds.
    Sleep(Expression),
    StartPipeline,
    Sync,
    EndPipeline,
}

/// A step as it runs: branches are jumps.
#[derive(Debug)]
pub enum Act {
    /// The number of a statement in the script.
    Run(usize),
    Set {
        variable: usize,
        to: Expression,
    },
    /// Goes to that act unless the condition holds.
    Unless(Expression, usize),
    Jump(usize),
    Sleep(Expression),
    StartPipeline,
    Sync,
    EndPipeline,
}

/// Turns steps into acts. `number`: a statement's number in the script by its number in the transaction; None: it is not this arm's.
pub fn compile(steps: impl Iterator<Item = Step>, number: impl Fn(usize) -> Option<usize>) -> Result<Vec<Act>> {
    let mut acts = Vec::new();
    // Of each open `if`: the act that decides about its current branch, and the jumps to its end.
    let mut open: Vec<(Option<usize>, Vec<usize>)> = Vec::new();
    let mut piped = false;
    for step in steps {
        match step {
            Step::Run(statement) => acts.extend(number(statement).map(Act::Run)),
            Step::Set { variable, to } => acts.push(Act::Set { variable, to }),
            Step::Sleep(time) => acts.push(Act::Sleep(time)),
            Step::If(condition) => {
                open.push((Some(acts.len()), Vec::new()));
                acts.push(Act::Unless(condition, 0));
            }
            Step::ElseIf(condition) => {
                let branch = branch_ends(&mut acts, open.last_mut())?;
                branch.0 = Some(acts.len());
                acts.push(Act::Unless(condition, 0));
            }
            Step::Else => {
                branch_ends(&mut acts, open.last_mut())?;
            }
            Step::EndIf => {
                let (decides, jumps) = open.pop().ok_or_else(without_if)?;
                let end = acts.len();
                for act in decides.into_iter().chain(jumps) {
                    set_target(&mut acts[act], end);
                }
            }
            Step::StartPipeline | Step::Sync | Step::EndPipeline if piped == matches!(step, Step::StartPipeline) => {
                return Err(Failure::no_program("the steps of pipelines don't follow one another"));
            }
            Step::StartPipeline => {
                piped = true;
                acts.push(Act::StartPipeline);
            }
            Step::Sync => acts.push(Act::Sync),
            Step::EndPipeline => {
                piped = false;
                acts.push(Act::EndPipeline);
            }
        }
    }
    if !open.is_empty() || piped {
        return Err(Failure::no_program("an `if` or a pipeline has no end"));
    }
    Ok(acts)
}

fn without_if() -> Failure {
    Failure::no_program("`elif`, `else` or `endif` without an `if` before it")
}

/// Ends the branch before this point: it jumps to the end, and the act that decides about it goes here.
fn branch_ends<'a>(
    acts: &mut Vec<Act>,
    open: Option<&'a mut (Option<usize>, Vec<usize>)>,
) -> Result<&'a mut (Option<usize>, Vec<usize>)> {
    let open = open.ok_or_else(without_if)?;
    let decides = open.0.take().ok_or_else(|| Failure::no_program("a branch after `else`"))?;
    open.1.push(acts.len());
    acts.push(Act::Jump(0));
    let here = acts.len();
    set_target(&mut acts[decides], here);
    Ok(open)
}

fn set_target(act: &mut Act, target: usize) {
    if let Act::Unless(_, at) | Act::Jump(at) = act {
        *at = target;
    }
}
