package ciphercost.agent;

/** What went wrong: the code and the one-line text of an `error` answer. */
final class Failure extends Exception {
    private static final long serialVersionUID = 1;

    /** Most characters of an error's text and of its code, which may come from a server. */
    private static final int LONGEST_TEXT = 2000;
    private static final int LONGEST_CODE = 60;

    final String code;
    /** The connection is lost and can't be used any more. */
    final boolean lost;

    Failure(String code, String text, boolean lost) {
        super(oneLine(text, LONGEST_TEXT), null, false, false);
        this.code = oneLine(code, LONGEST_CODE);
        this.lost = lost;
    }

    Failure(String code, String text) {
        this(code, text, false);
    }

    /** Reduces a server's text to one line of at most this many characters, without control characters, for display on terminals. */
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
