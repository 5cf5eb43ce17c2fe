package ciphercost.agent;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.security.KeyManagementException;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.security.Security;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLContextSpi;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLServerSocketFactory;
import javax.net.ssl.SSLSessionContext;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;

/**
 * Java's default TLS, which remembers the last socket that a thread has opened. A driver that has no TLS settings of its own takes
 * its sockets here, so the agent can read what its session has negotiated.
 */
final class TlsSessions extends SSLContextSpi {
    private static final ThreadLocal<SSLSocket> LAST = new ThreadLocal<>();

    private SSLContext own;

    private TlsSessions() {}

    /** Makes it the default of this virtual machine. Java's own is created only when a driver needs it. */
    static void install() {
        SSLContext.setDefault(new SSLContext(new TlsSessions(), Security.getProvider("SunJSSE"), "Default") {});
    }

    /** Forgets this thread's last socket. */
    static void begin() {
        LAST.remove();
    }

    /** This thread's socket since `begin`; null if it has opened none with Java's default TLS. */
    static SSLSocket last() {
        return LAST.get();
    }

    private synchronized SSLContext own() {
        try {
            if (own == null) {
                own = SSLContext.getInstance("Default");
            }
            return own;
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException("Java's default TLS can't be used: " + error.getMessage(), error);
        }
    }

    @Override
    protected void engineInit(KeyManager[] keys, TrustManager[] trust, SecureRandom random) throws KeyManagementException {
        throw new KeyManagementException("Java's default TLS is initialised already");
    }

    @Override
    protected SSLSocketFactory engineGetSocketFactory() {
        return new Factory(own().getSocketFactory());
    }

    @Override
    protected SSLServerSocketFactory engineGetServerSocketFactory() {
        return own().getServerSocketFactory();
    }

    @Override
    protected SSLEngine engineCreateSSLEngine() {
        return own().createSSLEngine();
    }

    @Override
    protected SSLEngine engineCreateSSLEngine(String host, int port) {
        return own().createSSLEngine(host, port);
    }

    @Override
    protected SSLSessionContext engineGetServerSessionContext() {
        return own().getServerSessionContext();
    }

    @Override
    protected SSLSessionContext engineGetClientSessionContext() {
        return own().getClientSessionContext();
    }

    private static final class Factory extends SSLSocketFactory {
        private final SSLSocketFactory own;

        Factory(SSLSocketFactory own) {
            this.own = own;
        }

        private static Socket kept(Socket made) {
            if (made instanceof SSLSocket socket) {
                LAST.set(socket);
            }
            return made;
        }

        @Override
        public String[] getDefaultCipherSuites() {
            return own.getDefaultCipherSuites();
        }

        @Override
        public String[] getSupportedCipherSuites() {
            return own.getSupportedCipherSuites();
        }

        @Override
        public Socket createSocket() throws IOException {
            return kept(own.createSocket());
        }

        @Override
        public Socket createSocket(String host, int port) throws IOException {
            return kept(own.createSocket(host, port));
        }

        @Override
        public Socket createSocket(InetAddress host, int port) throws IOException {
            return kept(own.createSocket(host, port));
        }

        @Override
        public Socket createSocket(String host, int port, InetAddress local, int localPort) throws IOException {
            return kept(own.createSocket(host, port, local, localPort));
        }

        @Override
        public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) throws IOException {
            return kept(own.createSocket(host, port, local, localPort));
        }

        @Override
        public Socket createSocket(Socket below, String host, int port, boolean close) throws IOException {
            return kept(own.createSocket(below, host, port, close));
        }
    }
}
