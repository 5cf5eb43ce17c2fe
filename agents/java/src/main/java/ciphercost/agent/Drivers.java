package ciphercost.agent;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Driver;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Loads JDBC drivers from jars, each in its own class loader, so that versions don't mix. */
final class Drivers {
    private static final String SERVICE = "META-INF/services/java.sql.Driver";
    private static final Pattern CLASS_FILE = Pattern.compile("class file version ([0-9]+)");
    /** The class file version of Java n is this plus n. */
    private static final int CLASS_FILE_OF_JAVA_0 = 44;

    private final Map<String, ClassLoader> loaders = new HashMap<>();

    /** Returns the driver in these jars that accepts this URL. `className`: empty for the classes that the first jar names. */
    Driver find(String jars, String className, String url) throws Failure {
        List<Path> paths = paths(jars);
        List<String> names = className.isEmpty() ? named(paths.get(0)) : List.of(className);
        ClassLoader loader = loaders.get(jars);
        if (loader == null) {
            loader = loader(paths);
            loaders.put(jars, loader);
        }
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader);
        try {
            for (String name : names) {
                Driver driver = make(name, loader, paths.get(0));
                if (accepts(driver, url)) {
                    return driver;
                }
            }
        } finally {
            thread.setContextClassLoader(before);
        }
        throw notIts(names.get(0), url);
    }

    static Failure notIts(String driver, String url) {
        return Failure.driver("the driver " + driver + " does not accept the URL " + shown(url)
                + "; the URL is misspelt or for another driver");
    }

    /** Returns a URL without its possibly secret parts: user, password and properties. */
    private static String shown(String url) {
        return url.replaceFirst("[?;].*", "").replaceFirst("//[^/]*@", "//");
    }

    private static List<Path> paths(String jars) throws Failure {
        List<Path> found = new ArrayList<>();
        for (String jar : jars.split(":")) {
            if (!jar.isEmpty()) {
                found.add(Path.of(jar));
            }
        }
        if (found.isEmpty()) {
            throw Failure.badMessage("jars: must name at least one file");
        }
        for (Path path : found) {
            if (!Files.isReadable(path) || Files.isDirectory(path)) {
                throw Failure.driver("jars: " + path + " can't be read");
            }
            try {
                new JarFile(path.toFile()).close();
            } catch (IOException error) {
                throw Failure.driver("jars: " + path + " is not a jar: " + error.getMessage());
            }
        }
        return found;
    }

    private static ClassLoader loader(List<Path> paths) throws Failure {
        List<URL> urls = new ArrayList<>();
        try {
            for (Path path : paths) {
                urls.add(path.toUri().toURL());
            }
        } catch (MalformedURLException error) {
            throw Failure.driver("jars: " + error.getMessage());
        }
        return new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
    }

    /** The drivers that a jar declares. */
    private static List<String> named(Path jar) throws Failure {
        List<String> names = new ArrayList<>();
        try (JarFile file = new JarFile(jar.toFile())) {
            JarEntry entry = file.getJarEntry(SERVICE);
            if (entry != null) {
                BufferedReader lines = new BufferedReader(
                        new InputStreamReader(file.getInputStream(entry), StandardCharsets.UTF_8));
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    String name = line.replaceFirst("#.*", "").strip();
                    if (!name.isEmpty()) {
                        names.add(name);
                    }
                }
            }
        } catch (IOException error) {
            throw Failure.driver(jar + " can't be read: " + error.getMessage());
        }
        if (names.isEmpty()) {
            throw Failure.driver(jar + " contains no JDBC driver: it has no " + SERVICE
                    + ". Name the driver's jar first, or its class in `driver_class`.");
        }
        return names;
    }

    private static Driver make(String name, ClassLoader loader, Path jar) throws Failure {
        try {
            Object made = Class.forName(name, true, loader).getDeclaredConstructor().newInstance();
            if (made instanceof Driver driver) {
                return driver;
            }
            throw Failure.driver(name + " in " + jar + " is not a java.sql.Driver");
        } catch (UnsupportedClassVersionError error) {
            Matcher version = CLASS_FILE.matcher(String.valueOf(error.getMessage()));
            String needs = version.find()
                    ? "Java " + (Integer.parseInt(version.group(1)) - CLASS_FILE_OF_JAVA_0)
                    : "a newer Java";
            throw Failure.driver("the driver " + name + " in " + jar + " needs " + needs + ", but this is Java "
                    + Runtime.version().feature() + ". Use an older driver, or set JAVA_HOME to a newer Java.");
        } catch (ClassNotFoundException error) {
            throw Failure.driver("there is no class " + name + " in " + jar);
        } catch (ReflectiveOperationException | LinkageError error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            throw Failure.driver("the driver " + name + " in " + jar + " can't be loaded: " + cause
                    + ". If it needs other jars, list them after it.");
        }
    }

    private static boolean accepts(Driver driver, String url) {
        try {
            return driver.acceptsURL(url);
        } catch (SQLException | RuntimeException error) {
            return true; // connect reports what is wrong with it
        }
    }
}
