package ciphercost.agent;

/** failure: what went wrong -> the code and the one line of text of an `error` answer. */
final class Failure extends Exception {
    private static final long serialVersionUID = 1;

    /** Letters of an error's text and of its code, which may be a server's own words. */
    private static final int LONGEST_TEXT = 2000;
    private static final int LONGEST_CODE = 60;

    final String code;
    /** The connection is gone: nothing more can be done on it. */
    final boolean lost;

    Failure(String code, String text, boolean lost) {
        super(oneLine(text, LONGEST_TEXT), null, false, false);
        this.code = oneLine(code, LONGEST_CODE);
        this.lost = lost;
    }

    Failure(String code, String text) {
        this(code, text, false);
    }

    /** A server's words as one line of at most so many letters, without control characters: they are shown on terminals. */
    static String oneLine(String text, int most) {
        String cut = text.length() <= most ? text : text.substring(0, most) + "…";
        return cut.replaceAll("\\p{Cntrl}", " ");
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
