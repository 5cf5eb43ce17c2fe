package ciphercost.agent;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;
import java.util.regex.Pattern;

/**
 * local files: keeps MySQL's and MariaDB's drivers from sending files of this machine (LOAD DATA LOCAL INFILE).
 *
 * <p>A server may ask for any file in answer to any statement, and a driver that allows it sends the file. Nothing that we run needs
 * that, so no property and no URL turns it on.
 */
final class LocalFiles {
    /** Connector/J's two, and MariaDB's; each ignores the others'. allowLoadLocalInfileInPath allows it by being set at all. */
    private static final List<String> SWITCHES = List.of("allowLoadLocalInfile", "allowUrlInLocalInfile", "allowLocalInfile");
    private static final Pattern NAME = Pattern.compile("(?i)\\s*allow\\w*infile\\w*\\s*");
    private static final Pattern IN_URL = Pattern.compile("(?i)(allow\\w*infile\\w*)\\s*=(?!\\s*(?:false|no)\\b)");

    private LocalFiles() {
    }

    /** Turns it off, whatever the properties say of it. */
    static void forbid(Properties properties) {
        properties.stringPropertyNames().stream().filter(name -> NAME.matcher(name).matches()).forEach(properties::remove);
        SWITCHES.forEach(name -> properties.setProperty(name, "false"));
    }

    /** Refuses a URL that turns it on: to some drivers the URL counts more than the properties. */
    static void check(String url) throws Failure {
        var match = IN_URL.matcher(decoded(url));
        if (match.find()) {
            throw Failure.driver("the URL sets " + match.group(1)
                    + ", by which the server may read files of this machine: leave it out of the URL");
        }
    }

    private static String decoded(String url) {
        try {
            return URLDecoder.decode(url, StandardCharsets.UTF_8);
        } catch (IllegalArgumentException error) {
            return url; // it is no encoded text
        }
    }
}
