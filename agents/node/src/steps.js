/** What a transaction does between its statements: steps as they are declared, and acts as they run, where branches are jumps. */

import { badMessage, noProgram } from './failure.js';

const SIMPLE = ['else', 'endif', 'startpipeline', 'syncpipeline', 'endpipeline'];

/** Reads the fields of a `step`, which takes its own and no others. */
export function readStep(what, fields, program) {
    const expression = () => program.expression(fields.text('expression'));
    if (what === 'set') {
        return { do: what, variable: program.variable('variable', fields.text('variable')), expression: expression() };
    }
    if (what === 'if' || what === 'elif' || what === 'sleep') {
        return { do: what, expression: expression() };
    }
    if (SIMPLE.includes(what)) {
        return { do: what };
    }
    throw badMessage(`do: "${what}" is not known`);
}

/**
 * Turns steps into acts. A step `{do: 'run', statement}` names a statement by its number in the transaction; `numbers`: each
 * statement's number in the script, -1: it is the other arm's.
 */
export function compile(steps, numbers) {
    const acts = [];
    /** Every `if` without its end: the act that decides about its current branch, null after `else`, and the jumps to its end. */
    const open = [];
    let piped = false;
    const decide = (branches, expression) => {
        branches.decides = { do: 'unless', expression, target: -1 };
        acts.push(branches.decides);
    };
    const here = (act) => {
        act.target = acts.length;
    };
    for (const step of steps) {
        if (step.do === 'run') {
            if (numbers[step.statement] >= 0) {
                acts.push({ do: 'run', statement: numbers[step.statement] });
            }
        } else if (step.do === 'set' || step.do === 'sleep') {
            acts.push(step);
        } else if (step.do.endsWith('pipeline')) {
            if (piped === (step.do === 'startpipeline')) {
                throw noProgram("the steps of pipelines don't follow one another");
            }
            piped = step.do !== 'endpipeline';
            acts.push({ do: 'pipeline' });
        } else if (step.do === 'if') {
            open.push({ decides: null, jumps: [] });
            decide(open.at(-1), step.expression);
        } else {
            branch(step, open, acts, decide, here);
        }
    }
    if (open.length > 0 || piped) {
        throw noProgram('an `if` or a pipeline has no end');
    }
    return acts;
}

/** `elif`, `else` or `endif`. */
function branch(step, open, acts, decide, here) {
    const branches = open.at(-1);
    if (!branches) {
        throw noProgram('`elif`, `else` or `endif` without an `if` before it');
    }
    if (step.do === 'endif') {
        open.pop();
        if (branches.decides) {
            here(branches.decides);
        }
        branches.jumps.forEach(here);
        return;
    }
    if (!branches.decides) {
        throw noProgram('a branch after `else`');
    }
    const jump = { do: 'jump', target: -1 };
    branches.jumps.push(jump);
    acts.push(jump);
    here(branches.decides);
    branches.decides = null;
    if (step.do === 'elif') {
        decide(branches, step.expression);
    }
}
