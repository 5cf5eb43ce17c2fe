package ciphercost.agent;

import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;

/**
 * Runs several programs in one virtual machine: each is a class and its arguments, and `--` stands between them.
 *
 * <p>A server that listens either with TLS or without it serves both on one database in this way. If one program fails, all end.
 */
public final class Mains {
    private static final String NEXT = "--";

    private Mains() {}

    public static void main(String[] arguments) {
        int from = 0;
        for (int at = 0; at <= arguments.length; at++) {
            if (at == arguments.length || arguments[at].equals(NEXT)) {
                run(Arrays.copyOfRange(arguments, from, at));
                from = at + 1;
            }
        }
    }

    private static void run(String[] program) {
        try {
            String[] own = Arrays.copyOfRange(program, 1, program.length);
            Class.forName(program[0]).getMethod("main", String[].class).invoke(null, (Object) own);
        } catch (InvocationTargetException error) {
            end(error.getCause());
        } catch (ReflectiveOperationException | RuntimeException error) {
            end(error);
        }
    }

    private static void end(Throwable error) {
        error.printStackTrace();
        Runtime.getRuntime().halt(1);
    }
}
