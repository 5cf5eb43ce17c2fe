package ciphercost.agent;

/** A step of a transaction, as it is declared. */
sealed interface Step {
    /** The number of a statement among those of the transaction. */
    record Run(int statement) implements Step {}

    record Set(int variable, Expression to) implements Step {}

    record If(Expression condition) implements Step {}

    record ElseIf(Expression condition) implements Step {}

    record Else() implements Step {}

    record EndIf() implements Step {}

    /** `time`: microseconds. */
    record Sleep(Expression time) implements Step {}

    enum Pipeline implements Step {
        START,
        SYNC,
        END
    }

    /** Reads the fields of a `step`, which takes its own and no others. */
    static Step read(String what, Fields fields, Program program) throws Failure {
        return switch (what) {
            case "set" -> new Set(program.variable("variable", fields.text("variable")), expression(fields, program));
            case "if" -> new If(expression(fields, program));
            case "elif" -> new ElseIf(expression(fields, program));
            case "sleep" -> new Sleep(expression(fields, program));
            case "else" -> new Else();
            case "endif" -> new EndIf();
            case "startpipeline" -> Pipeline.START;
            case "syncpipeline" -> Pipeline.SYNC;
            case "endpipeline" -> Pipeline.END;
            default -> throw Failure.badMessage("do: \"" + what + "\" is not known");
        };
    }

    private static Expression expression(Fields fields, Program program) throws Failure {
        return program.expression(fields.text("expression"));
    }
}
