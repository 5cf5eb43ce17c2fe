package ciphercost.agent;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** A step as it runs: branches are jumps. */
sealed interface Act {
    /** The number of a statement in the script. */
    record Run(int statement) implements Act {}

    record Set(int variable, Expression to) implements Act {}

    /** Goes to that act unless the condition holds. */
    record Unless(Expression condition, int target) implements Act {}

    record Jump(int target) implements Act {}

    record Sleep(Expression time) implements Act {}

    /** No driver of this agent has pipelines. */
    record Pipeline() implements Act {}

    /** Turns steps into acts. `numbers`: each statement's number in the script by its number in the transaction; -1: it is the other arm's. */
    static List<Act> compile(List<Step> steps, int[] numbers) throws Failure {
        return new Compiler().compile(steps, numbers);
    }

    /** The acts so far, and where they are. */
    final class Compiler {
        private static final int NONE = -1;

        /** An `if` without its end: the act that decides about its current branch, NONE after `else`, and the jumps to its end. */
        private static final class Branches {
            int decides;
            final List<Integer> jumps = new ArrayList<>();
        }

        private final List<Act> acts = new ArrayList<>();
        private final Deque<Branches> open = new ArrayDeque<>();
        private boolean piped;

        private List<Act> compile(List<Step> steps, int[] numbers) throws Failure {
            for (Step step : steps) {
                if (step instanceof Step.Run run) {
                    if (numbers[run.statement()] >= 0) {
                        acts.add(new Run(numbers[run.statement()]));
                    }
                } else if (step instanceof Step.Set set) {
                    acts.add(new Set(set.variable(), set.to()));
                } else if (step instanceof Step.Sleep sleep) {
                    acts.add(new Sleep(sleep.time()));
                } else if (step instanceof Step.Pipeline pipeline) {
                    pipeline(pipeline);
                } else {
                    branch(step);
                }
            }
            if (!open.isEmpty() || piped) {
                throw Failure.noProgram("an `if` or a pipeline has no end");
            }
            return List.copyOf(acts);
        }

        private void pipeline(Step.Pipeline pipeline) throws Failure {
            if (piped == (pipeline == Step.Pipeline.START)) {
                throw Failure.noProgram("the steps of pipelines don't follow one another");
            }
            piped = pipeline != Step.Pipeline.END;
            acts.add(new Pipeline());
        }

        private void branch(Step step) throws Failure {
            if (step instanceof Step.If begins) {
                open.push(new Branches());
                decide(begins.condition());
                return;
            }
            Branches branches = open.peek();
            if (branches == null) {
                throw Failure.noProgram("`elif`, `else` or `endif` without an `if` before it");
            }
            if (step instanceof Step.EndIf) {
                open.pop();
                if (branches.decides != NONE) {
                    goHere(branches.decides);
                }
                branches.jumps.forEach(this::goHere);
                return;
            }
            if (branches.decides == NONE) {
                throw Failure.noProgram("a branch after `else`");
            }
            branches.jumps.add(acts.size());
            acts.add(new Jump(NONE));
            goHere(branches.decides);
            branches.decides = NONE;
            if (step instanceof Step.ElseIf next) {
                decide(next.condition());
            }
        }

        private void decide(Expression condition) {
            open.element().decides = acts.size();
            acts.add(new Unless(condition, NONE));
        }

        /** That act goes to the next one to come. */
        private void goHere(int act) {
            int here = acts.size();
            acts.set(act, acts.get(act) instanceof Unless unless ? new Unless(unless.condition, here) : new Jump(here));
        }
    }
}
