package ciphercost.agent;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;
import java.util.regex.Pattern;

/**
 * Prevents MySQL's and MariaDB's drivers from sending files of this machine (LOAD DATA LOCAL INFILE).
 *
 * <p>A server may request any file in answer to any statement, and a driver that allows it sends the file. The agent never needs
 * this, so no property and no URL can enable it.
 */
final class LocalFiles {
    /**
     * Two properties of Connector/J and one of MariaDB; each ignores the others'. allowLoadLocalInfileInPath enables it by being set
     * at all.
     */
    private static final List<String> SWITCHES = List.of("allowLoadLocalInfile", "allowUrlInLocalInfile", "allowLocalInfile");
    private static final Pattern NAME = Pattern.compile("(?i)\\s*allow\\w*infile\\w*\\s*");
    private static final Pattern IN_URL = Pattern.compile("(?i)(allow\\w*infile\\w*)\\s*=(?!\\s*(?:false|no)\\b)");

    private LocalFiles() {
    }

    /** Disables it, whatever the properties say. */
    static void forbid(Properties properties) {
        properties.stringPropertyNames().stream().filter(name -> NAME.matcher(name).matches()).forEach(properties::remove);
        SWITCHES.forEach(name -> properties.setProperty(name, "false"));
    }

    /** Refuses a URL that enables it, because some drivers prefer the URL to the properties. */
    static void check(String url) throws Failure {
        var match = IN_URL.matcher(decoded(url));
        if (match.find()) {
            throw Failure.driver("the URL sets " + match.group(1)
                    + ", which lets the server read files of this machine; remove it from the URL");
        }
    }

    private static String decoded(String url) {
        try {
            return URLDecoder.decode(url, StandardCharsets.UTF_8);
        } catch (IllegalArgumentException error) {
            return url; // not an encoded text
        }
    }
}
