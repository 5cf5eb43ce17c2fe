package ciphercost.agent;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** ciphercost-agent-jdbc generates load and does nothing else. It reads and writes lines as described in PROTOCOL.md. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        // Drivers may print messages for people; standard output is only for the protocol.
        PrintStream output = System.out;
        System.setOut(System.err);
        int status;
        try {
            Sockets.install();
            TlsSessions.install();
            status = serve(new BufferedInputStream(System.in, 1 << 16), output);
        } catch (Failure failure) {
            System.err.println(failure.spell());
            status = 1;
        } catch (IOException error) {
            status = 0; // if the other end is closed, nothing is left to do
        }
        output.flush();
        // Drivers leave threads behind that may wait for a silent server.
        Runtime.getRuntime().halt(status);
    }

    private static int serve(InputStream input, PrintStream output) throws IOException {
        Session session = new Session();
        for (byte[] line = line(input); line != null; line = line(input)) {
            say(session.answer(line, answer -> say(answer, output)), output);
            if (output.checkError()) {
                return 0;
            }
            if (session.status() != null) {
                return session.status();
            }
        }
        session.close();
        return 0;
    }

    /** The next line without its end; null at the end of the input. */
    private static byte[] line(InputStream input) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int next = input.read(); next != '\n'; next = input.read()) {
            if (next < 0) {
                return out.size() == 0 ? null : out.toByteArray();
            }
            out.write(next);
        }
        return out.toByteArray();
    }

    private static void say(Map<String, Object> answer, PrintStream output) {
        byte[] line = (Json.write(answer) + "\n").getBytes(StandardCharsets.UTF_8);
        output.write(line, 0, line.length);
        output.flush();
    }
}
