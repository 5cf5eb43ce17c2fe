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

/** drivers: paths of jars -> their JDBC driver, each in a class loader of its own, so that versions never meet. */
final class Drivers {
    private static final String SERVICE = "META-INF/services/java.sql.Driver";
    private static final Pattern CLASS_FILE = Pattern.compile("class file version ([0-9]+)");
    /** The class file version of Java n is this plus n. */
    private static final int CLASS_FILE_OF_JAVA_0 = 44;

    private final Map<String, ClassLoader> loaders = new HashMap<>();

    /** The driver of these jars that takes this URL. `className`: empty for those that the first jar names. */
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
        return Failure.driver("the driver " + driver + " does not take the URL " + shown(url)
                + ": it is another driver's, or misspelt");
    }

    /** A URL without what may be secret in it: no user, no password, no properties. */
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
            throw Failure.badMessage("jars: names no file");
        }
        for (Path path : found) {
            if (!Files.isReadable(path) || Files.isDirectory(path)) {
                throw Failure.driver("jars: " + path + " can't be read");
            }
            try {
                new JarFile(path.toFile()).close();
            } catch (IOException error) {
                throw Failure.driver("jars: " + path + " is no jar: " + error.getMessage());
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

    /** The drivers that a jar says it holds. */
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
            throw Failure.driver(jar + " holds no JDBC driver: there is no " + SERVICE
                    + " in it. Name the driver's jar first, or its class in `driver_class`.");
        }
        return names;
    }

    private static Driver make(String name, ClassLoader loader, Path jar) throws Failure {
        try {
            Object made = Class.forName(name, true, loader).getDeclaredConstructor().newInstance();
            if (made instanceof Driver driver) {
                return driver;
            }
            throw Failure.driver(name + " in " + jar + " is no java.sql.Driver");
        } catch (UnsupportedClassVersionError error) {
            Matcher version = CLASS_FILE.matcher(String.valueOf(error.getMessage()));
            String needs = version.find()
                    ? "Java " + (Integer.parseInt(version.group(1)) - CLASS_FILE_OF_JAVA_0)
                    : "a newer Java";
            throw Failure.driver("the driver " + name + " in " + jar + " needs " + needs + ", and this is Java "
                    + Runtime.version().feature() + ". Take an older driver, or set JAVA_HOME to a newer Java.");
        } catch (ClassNotFoundException error) {
            throw Failure.driver("there is no class " + name + " in " + jar);
        } catch (ReflectiveOperationException | LinkageError error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            throw Failure.driver("the driver " + name + " in " + jar + " can't be loaded: " + cause
                    + ". If it needs other jars, name them after it.");
        }
    }

    private static boolean accepts(Driver driver, String url) {
        try {
            return driver.acceptsURL(url);
        } catch (SQLException | RuntimeException error) {
            return true; // connect says why it is not a good one
        }
    }
}
