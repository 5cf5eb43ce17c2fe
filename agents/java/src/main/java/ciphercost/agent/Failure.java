package ciphercost.agent;

/** failure: what went wrong -> the code and the one line of text of an `error` answer. */
final class Failure extends Exception {
    private static final long serialVersionUID = 1;

    final String code;
    /** The connection is gone: nothing more can be done on it. */
    final boolean lost;

    Failure(String code, String text, boolean lost) {
        super(text.replace('\n', ' ').replace('\r', ' '), null, false, false);
        this.code = code;
        this.lost = lost;
    }

    Failure(String code, String text) {
        this(code, text, false);
    }

    static Failure protocol(String text) {
        return new Failure("protocol", text);
    }

    static Failure badMessage(String text) {
        return new Failure("bad-message", text);
    }

    static Failure noProgram(String text) {
        return new Failure("no-program", text);
    }

    static Failure noArm(String arm) {
        return new Failure("no-arm", "arm \"" + arm + "\" is not connected; send `connect` first");
    }

    static Failure statement(String text) {
        return new Failure("statement", text);
    }

    static Failure driver(String text) {
        return new Failure("driver", text);
    }

    static Failure internal(String text) {
        return new Failure("internal", text);
    }

    /** The code as one word, for a list of `CODE=COUNT`. */
    String kind() {
        String word = code.replaceAll("[^\\p{L}\\p{N}_.-]", "-");
        return word.isEmpty() ? "unknown" : word;
    }

    String spell() {
        return code + ": " + getMessage();
    }
}
