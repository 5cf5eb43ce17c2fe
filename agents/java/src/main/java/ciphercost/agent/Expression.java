package ciphercost.agent;

import java.util.List;
import java.util.function.IntConsumer;

/** An expression of a script, as a tree. Its values are those of Scalar. */
sealed interface Expression {
    record Constant(Object value) implements Expression {}

    /** `number`: the variable's. */
    record Variable(int number) implements Expression {}

    record Call(Function function, List<Expression> given) implements Expression {}

    /** `and`, which ends with false, or `or`, which ends with true. */
    record Decision(boolean endsWith, Expression first, Expression second) implements Expression {}

    /** Conditions and values in turn; the last value is that of `else`. */
    record Case(List<Expression> parts) implements Expression {}

    /** Its value. As in pgbench, `case`, `and` and `or` evaluate only what decides them. */
    default Object evaluate(Script.Operation operation) throws Failure {
        if (this instanceof Constant constant) {
            return constant.value;
        }
        if (this instanceof Variable variable) {
            return operation.scalar(variable.number);
        }
        if (this instanceof Decision decision) {
            Object first = decision.first.evaluate(operation);
            if (first == null) {
                return null;
            }
            if (Scalar.bool(first) == decision.endsWith) {
                return decision.endsWith;
            }
            Object second = decision.second.evaluate(operation);
            return second == null ? null : (Object) Scalar.bool(second);
        }
        if (this instanceof Case branches) {
            int at = 0;
            while (at + 1 < branches.parts.size() && !Scalar.isTrue(branches.parts.get(at).evaluate(operation))) {
                at += 2;
            }
            return branches.parts.get(Math.min(at + 1, branches.parts.size() - 1)).evaluate(operation);
        }
        Call call = (Call) this;
        Object[] values = new Object[call.given.size()];
        for (int at = 0; at < values.length; at++) {
            values[at] = call.given.get(at).evaluate(operation);
        }
        return call.function.call(values, operation.random());
    }

    /** The variables that it reads, each as often as it does. */
    default void variables(IntConsumer see) {
        if (this instanceof Variable variable) {
            see.accept(variable.number);
        } else if (this instanceof Decision decision) {
            decision.first.variables(see);
            decision.second.variables(see);
        } else if (this instanceof Case branches) {
            branches.parts.forEach(part -> part.variables(see));
        } else if (this instanceof Call call) {
            call.given.forEach(part -> part.variables(see));
        }
    }
}
