package ciphercost.agent;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.spec.AlgorithmParameterSpec;
import java.util.Arrays;
import java.util.Map;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** Measures the cost per byte of a cipher alone, with Java's own library: used as in a TLS record layer, or page by page as at rest. */
final class Floor {
    /** The largest TLS record. */
    static final int RECORD_BYTES = 16 * 1024;
    private static final int TAG_BITS = 128;
    private static final int BLOCK_BYTES = 16;
    private static final int MOST_UNIT = 1 << 20;
    /** The record's header is associated data. */
    private static final byte[] HEADER = {0x17, 3, 3, 0x40, 0x11};
    /** The bytes are divided into this many passes. The fastest counts, because other activity on the machine only adds time. */
    private static final int PASSES = 5;
    /** Warm-up: before it is compiled, a cipher costs many times as much. */
    private static final long WARM_BYTES = 4_000L * RECORD_BYTES;
    /** As many units get the code compiled, however small they are. */
    private static final long WARM_UNITS = 100_000;
    private static final long MOST_BYTES = 1L << 32;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final String algorithm;
    private final SecretKeySpec key;
    /** Authenticates what a cipher encrypted that does not do so itself; null: nothing does. */
    private final Mac mac;
    private final int unit;

    private Floor(String algorithm, String keys, int keyBytes, Mac mac, int unit) {
        byte[] bytes = new byte[keyBytes];
        Arrays.fill(bytes, (byte) 0x5a);
        this.algorithm = algorithm;
        this.key = new SecretKeySpec(bytes, keys);
        this.mac = mac;
        this.unit = unit;
    }

    /** Seals and opens units of this many bytes under one key until at least `bytes` are processed. `mac`: null for none. */
    static void measure(String cipher, String mac, long unit, long bytes, Map<String, Object> answer) throws Failure {
        String[] found = switch (cipher) {
            case "aes256-gcm" -> new String[] {"AES/GCM/NoPadding", "AES", "32"};
            case "aes128-gcm" -> new String[] {"AES/GCM/NoPadding", "AES", "16"};
            case "chacha20" -> new String[] {"ChaCha20-Poly1305", "ChaCha20", "32"};
            case "aes128-cbc" -> new String[] {"AES/CBC/NoPadding", "AES", "16"};
            case "aes192-cbc" -> new String[] {"AES/CBC/NoPadding", "AES", "24"};
            case "aes256-cbc" -> new String[] {"AES/CBC/NoPadding", "AES", "32"};
            case "aes128-ctr" -> new String[] {"AES/CTR/NoPadding", "AES", "16"};
            case "aes192-ctr" -> new String[] {"AES/CTR/NoPadding", "AES", "24"};
            case "aes256-ctr" -> new String[] {"AES/CTR/NoPadding", "AES", "32"};
            default -> throw Failure.badMessage("cipher: \"" + cipher + "\" is not one of aes256-gcm, aes128-gcm, chacha20, "
                + "aes128-cbc, aes192-cbc, aes256-cbc, aes128-ctr, aes192-ctr, aes256-ctr");
        };
        if (bytes < 1 || bytes > MOST_BYTES) {
            throw Failure.badMessage("bytes: must lie between 1 and " + MOST_BYTES);
        }
        if (unit < 1 || unit > MOST_UNIT) {
            throw Failure.badMessage("unit: must lie between 1 and " + MOST_UNIT);
        }
        if (found[0].contains("CBC") && unit % BLOCK_BYTES != 0) {
            throw Failure.badMessage("unit: " + cipher + " encrypts whole blocks, so it must be a multiple of " + BLOCK_BYTES);
        }
        boolean aead = authenticates(found[0]);
        if (aead && mac != null) {
            throw Failure.badMessage("mac: " + cipher + " authenticates by itself; leave it out");
        }
        try {
            Floor floor = new Floor(found[0], found[1], Integer.parseInt(found[2]), mac == null ? null : mac(mac), (int) unit);
            long share = PASSES * unit;
            floor.passes((bytes + share - 1) / share, answer);
        } catch (GeneralSecurityException error) {
            throw Failure.internal("the cipher failed: " + error.getMessage());
        }
    }

    private static Mac mac(String name) throws Failure, GeneralSecurityException {
        String algorithm = switch (name) {
            case "hmac-sha1" -> "HmacSHA1";
            case "hmac-sha256" -> "HmacSHA256";
            case "hmac-sha512" -> "HmacSHA512";
            default -> throw Failure.badMessage("mac: \"" + name + "\" is not one of hmac-sha1, hmac-sha256, hmac-sha512");
        };
        Mac made = Mac.getInstance(algorithm);
        made.init(new SecretKeySpec(new byte[32], algorithm));
        return made;
    }

    private static boolean authenticates(String algorithm) {
        return algorithm.contains("GCM") || algorithm.contains("Poly1305");
    }

    private void passes(long units, Map<String, Object> answer) throws GeneralSecurityException {
        Cipher sealing = Cipher.getInstance(algorithm);
        Cipher opening = Cipher.getInstance(algorithm);
        boolean aead = authenticates(algorithm);
        int length = unit + (aead ? TAG_BITS / 8 : 0);
        byte[] clear = new byte[unit];
        // Two nonces that alternate: Java refuses to use the same nonce twice in a row, even for opening.
        byte[][] sealed = new byte[2][length];
        byte[][] tags = new byte[2][];
        byte[] opened = new byte[length];
        long sealNs = Long.MAX_VALUE;
        long openNs = Long.MAX_VALUE;
        for (int pass = -1; pass < PASSES; pass++) {
            // The first pass gets the code compiled.
            long count = pass < 0 ? Math.max(1, Math.min(WARM_UNITS, WARM_BYTES / unit)) : units;
            long begin = THREADS.getCurrentThreadCpuTime();
            for (long number = 0; number < count; number++) {
                int which = (int) (number & 1);
                byte[] nonce = nonce(pass, number);
                sealing.init(Cipher.ENCRYPT_MODE, key, parameters(nonce));
                if (aead) {
                    sealing.updateAAD(HEADER);
                }
                sealing.doFinal(clear, 0, unit, sealed[which]);
                if (mac != null) {
                    tags[which] = tag(nonce, sealed[which]);
                }
            }
            long middle = THREADS.getCurrentThreadCpuTime();
            // All units have the same length, so opening the last two repeatedly costs the same as opening each.
            long last = count - 1;
            for (long number = 0; number < count; number++) {
                long again = last - (last - number & 1);
                int which = (int) (again & 1);
                byte[] nonce = nonce(pass, again);
                if (mac != null && !MessageDigest.isEqual(tags[which], tag(nonce, sealed[which]))) {
                    throw new GeneralSecurityException("a MAC differs");
                }
                opening.init(Cipher.DECRYPT_MODE, key, parameters(nonce));
                if (aead) {
                    opening.updateAAD(HEADER);
                }
                opening.doFinal(sealed[which], 0, length, opened);
            }
            if (pass >= 0) {
                sealNs = Math.min(sealNs, middle - begin);
                openNs = Math.min(openNs, THREADS.getCurrentThreadCpuTime() - middle);
            }
        }
        double passBytes = (double) units * unit;
        answer.put("bytes", PASSES * units * unit);
        answer.put("ns_per_byte_seal", sealNs / passBytes);
        answer.put("ns_per_byte_open", openNs / passBytes);
    }

    /** The MAC of a nonce and what was encrypted with it. */
    private byte[] tag(byte[] nonce, byte[] sealed) {
        mac.update(nonce);
        return mac.doFinal(sealed);
    }

    /** As in TLS, each unit's nonce is its number. */
    private byte[] nonce(int pass, long number) {
        return ByteBuffer.allocate(authenticates(algorithm) ? 12 : BLOCK_BYTES).putInt(pass).putLong(number).array();
    }

    private AlgorithmParameterSpec parameters(byte[] nonce) {
        return algorithm.contains("GCM") ? new GCMParameterSpec(TAG_BITS, nonce) : new IvParameterSpec(nonce);
    }
}
