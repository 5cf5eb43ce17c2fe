package ciphercost.agent;

import java.io.FileDescriptor;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketImpl;
import java.net.SocketOption;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;

/**
 * Java's own sockets, with streams that are checked while a driver logs in to another machine.
 *
 * <p>Every version of every driver opens its connections with java.net.Socket, so neither a driver's settings nor its own
 * behaviour can bypass this. Streams to loopback, and connections after their login, are Java's own, but for the first answer of a
 * server (`FirstAnswer`).
 */
final class Sockets extends SocketImpl {
    private static final Map<String, Method> METHODS = new HashMap<>();

    private final SocketImpl own;
    private final Exposure exposure = Exposure.current();
    private final FirstAnswer firstAnswer = exposure == null ? null : exposure.firstAnswer();
    private LoginGuard guard;

    private Sockets(SocketImpl own) {
        this.own = own;
    }

    /** Makes every socket of this virtual machine an instance of this class. Needs the packages that the jar's manifest opens. */
    static void install() throws Failure {
        try {
            Callable<Object> maker = maker();
            for (Method method : SocketImpl.class.getDeclaredMethods()) {
                if (!java.lang.reflect.Modifier.isStatic(method.getModifiers())) {
                    method.setAccessible(true);
                    METHODS.put(key(method.getName(), method.getParameterTypes()), method);
                }
            }
            setFactory(maker);
        } catch (ReflectiveOperationException | RuntimeException | IOException error) {
            throw Failure.internal("this Java (" + Runtime.version() + ") does not let the agent watch its sockets, so passwords "
                    + "could not be protected; use Java 17 or 21: " + error);
        }
    }

    /** Creates Java's own sockets: a method since Java 13, a class in Java 8. */
    private static Callable<Object> maker() throws ReflectiveOperationException {
        Method method;
        try {
            method = SocketImpl.class.getDeclaredMethod("createPlatformSocketImpl", boolean.class);
        } catch (NoSuchMethodException older) {
            Constructor<?> plain = Class.forName("java.net.PlainSocketImpl").getDeclaredConstructor();
            plain.setAccessible(true);
            return plain::newInstance;
        }
        method.setAccessible(true);
        return () -> method.invoke(null, false);
    }

    @SuppressWarnings("deprecation") // there is no other way to get between a driver and its socket
    private static void setFactory(Callable<Object> maker) throws IOException {
        Socket.setSocketImplFactory(() -> {
            try {
                return new Sockets((SocketImpl) maker.call());
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        });
    }

    private void watch(InetAddress address) throws IOException {
        boolean loopback = address != null && address.isLoopbackAddress();
        if (loopback && (exposure == null || !exposure.relayed) || exposure != null && exposure.trusted) {
            return;
        }
        if (exposure == null) {
            throw new IOException("refused a connection to another machine outside of a login");
        }
        guard = exposure.guard();
    }

    @Override
    protected InputStream getInputStream() throws IOException {
        InputStream in = (InputStream) call("getInputStream");
        InputStream checked = guard == null ? in : guard.input(in);
        return firstAnswer == null ? checked : firstAnswer.input(checked);
    }

    @Override
    protected OutputStream getOutputStream() throws IOException {
        OutputStream out = (OutputStream) call("getOutputStream");
        return guard == null ? out : guard.output(out);
    }

    @Override
    protected void connect(SocketAddress address, int timeout) throws IOException {
        watch(address instanceof InetSocketAddress inet ? inet.getAddress() : null);
        call("connect", new Class<?>[] {SocketAddress.class, int.class}, address, timeout);
    }

    @Override
    protected void connect(String host, int port) throws IOException {
        connect(InetAddress.getByName(host), port);
    }

    @Override
    protected void connect(InetAddress address, int port) throws IOException {
        connect(new InetSocketAddress(address, port), 0);
    }

    @Override
    protected void create(boolean stream) throws IOException {
        call("create", new Class<?>[] {boolean.class}, stream);
    }

    @Override
    protected void bind(InetAddress host, int port) throws IOException {
        call("bind", new Class<?>[] {InetAddress.class, int.class}, host, port);
    }

    @Override
    protected void listen(int backlog) throws IOException {
        throw new IOException("sockets of drivers can't listen");
    }

    @Override
    protected void accept(SocketImpl other) throws IOException {
        throw new IOException("sockets of drivers can't listen");
    }

    @Override
    protected int available() throws IOException {
        return (int) call("available");
    }

    @Override
    protected void close() throws IOException {
        call("close");
    }

    @Override
    protected void shutdownInput() throws IOException {
        call("shutdownInput");
    }

    @Override
    protected void shutdownOutput() throws IOException {
        call("shutdownOutput");
    }

    @Override
    protected boolean supportsUrgentData() {
        return false;
    }

    @Override
    protected void sendUrgentData(int data) throws IOException {
        throw new IOException("urgent data is not supported");
    }

    @Override
    protected FileDescriptor getFileDescriptor() {
        return (FileDescriptor) quiet("getFileDescriptor");
    }

    @Override
    protected InetAddress getInetAddress() {
        return (InetAddress) quiet("getInetAddress");
    }

    @Override
    protected int getPort() {
        return (int) quiet("getPort");
    }

    @Override
    protected int getLocalPort() {
        return (int) quiet("getLocalPort");
    }

    @Override
    public void setOption(int option, Object value) throws java.net.SocketException {
        options(new Class<?>[] {int.class, Object.class}, "setOption", option, value);
    }

    @Override
    public Object getOption(int option) throws java.net.SocketException {
        return options(new Class<?>[] {int.class}, "getOption", option);
    }

    @Override
    protected <T> void setOption(SocketOption<T> name, T value) throws IOException {
        call("setOption", new Class<?>[] {SocketOption.class, Object.class}, name, value);
    }

    @Override
    @SuppressWarnings("unchecked")
    protected <T> T getOption(SocketOption<T> name) throws IOException {
        return (T) call("getOption", new Class<?>[] {SocketOption.class}, name);
    }

    @Override
    @SuppressWarnings("unchecked")
    protected Set<SocketOption<?>> supportedOptions() {
        return (Set<SocketOption<?>>) quiet("supportedOptions");
    }

    // ── reflection: protected members of another SocketImpl ───────────────────────────────────────────

    private static String key(String name, Class<?>... types) {
        return name + java.util.Arrays.toString(types);
    }

    private Object call(String name) throws IOException {
        return call(name, new Class<?>[0]);
    }

    private Object call(String name, Class<?>[] types, Object... values) throws IOException {
        Method method = METHODS.get(key(name, types));
        try {
            // Integer options are methods of SocketOptions, which SocketImpl leaves to its subclasses.
            Object found = (method == null ? java.net.SocketOptions.class.getMethod(name, types) : method).invoke(own, values);
            if ("connect".equals(name) || "create".equals(name) || "bind".equals(name)) {
                fd = getFileDescriptor();
                this.address = getInetAddress();
                this.port = getPort();
                this.localport = getLocalPort();
            }
            return found;
        } catch (InvocationTargetException error) {
            Throwable cause = error.getCause();
            if (cause instanceof IOException failure) {
                throw failure;
            }
            if (cause instanceof RuntimeException failure) {
                throw failure;
            }
            throw new IOException(cause);
        } catch (ReflectiveOperationException error) {
            throw new IOException(error);
        }
    }

    private Object options(Class<?>[] types, String name, Object... values) throws java.net.SocketException {
        try {
            return call(name, types, values);
        } catch (java.net.SocketException error) {
            throw error;
        } catch (IOException error) {
            throw new java.net.SocketException(error.getMessage());
        }
    }

    private Object quiet(String name) {
        try {
            return call(name);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }
}
