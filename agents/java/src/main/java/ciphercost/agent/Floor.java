package ciphercost.agent;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.spec.AlgorithmParameterSpec;
import java.util.Map;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** Measures the cost per byte of a cipher alone, with Java's own library, used as in a TLS record layer. */
final class Floor {
    private static final int RECORD_BYTES = 16 * 1024;
    private static final int TAG_BITS = 128;
    /** The record's header is associated data. */
    private static final byte[] HEADER = {0x17, 3, 3, 0x40, 0x11};
    /** The bytes are divided into this many passes. The fastest counts, because other activity on the machine only adds time. */
    private static final int PASSES = 5;
    /** Warm-up: before it is compiled, a cipher costs many times as much. */
    private static final long WARM_RECORDS = 4_000;
    private static final long MOST_BYTES = 1L << 32;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final String algorithm;
    private final SecretKeySpec key;

    private Floor(String algorithm, String keys, int keyBytes) {
        byte[] bytes = new byte[keyBytes];
        java.util.Arrays.fill(bytes, (byte) 0x5a);
        this.algorithm = algorithm;
        this.key = new SecretKeySpec(bytes, keys);
    }

    /** Seals and opens records of 16 KiB under one key until at least `bytes` are processed. */
    static void measure(String cipher, long bytes, Map<String, Object> answer) throws Failure {
        Floor floor = switch (cipher) {
            case "aes256-gcm" -> new Floor("AES/GCM/NoPadding", "AES", 32);
            case "aes128-gcm" -> new Floor("AES/GCM/NoPadding", "AES", 16);
            case "chacha20" -> new Floor("ChaCha20-Poly1305", "ChaCha20", 32);
            default -> throw Failure.badMessage("cipher: \"" + cipher + "\" is not one of aes256-gcm, aes128-gcm, chacha20");
        };
        if (bytes < 1 || bytes > MOST_BYTES) {
            throw Failure.badMessage("bytes: must lie between 1 and " + MOST_BYTES);
        }
        long share = (long) PASSES * RECORD_BYTES;
        long records = (bytes + share - 1) / share;
        try {
            floor.passes(records, answer);
        } catch (GeneralSecurityException error) {
            throw Failure.internal("the cipher failed: " + error.getMessage());
        }
    }

    private void passes(long records, Map<String, Object> answer) throws GeneralSecurityException {
        Cipher sealing = Cipher.getInstance(algorithm);
        Cipher opening = Cipher.getInstance(algorithm);
        byte[] clear = new byte[RECORD_BYTES];
        // Two nonces that alternate: Java refuses to use the same nonce twice in a row, even for opening.
        byte[][] sealed = new byte[2][RECORD_BYTES + TAG_BITS / 8];
        byte[] opened = new byte[RECORD_BYTES + TAG_BITS / 8];
        long sealNs = Long.MAX_VALUE;
        long openNs = Long.MAX_VALUE;
        for (int pass = -1; pass < PASSES; pass++) {
            // The first pass gets the code compiled.
            long count = pass < 0 ? WARM_RECORDS : records;
            long begin = THREADS.getCurrentThreadCpuTime();
            for (long record = 0; record < count; record++) {
                sealing.init(Cipher.ENCRYPT_MODE, key, nonce(pass, record));
                sealing.updateAAD(HEADER);
                sealing.doFinal(clear, 0, RECORD_BYTES, sealed[(int) (record & 1)]);
            }
            long middle = THREADS.getCurrentThreadCpuTime();
            // All records have the same length, so opening the last two repeatedly costs the same as opening each.
            long last = count - 1;
            for (long record = 0; record < count; record++) {
                long which = last - (last - record & 1);
                opening.init(Cipher.DECRYPT_MODE, key, nonce(pass, which));
                opening.updateAAD(HEADER);
                opening.doFinal(sealed[(int) (which & 1)], 0, sealed[0].length, opened);
            }
            if (pass >= 0) {
                sealNs = Math.min(sealNs, middle - begin);
                openNs = Math.min(openNs, THREADS.getCurrentThreadCpuTime() - middle);
            }
        }
        double passBytes = (double) records * RECORD_BYTES;
        answer.put("bytes", PASSES * records * RECORD_BYTES);
        answer.put("ns_per_byte_seal", sealNs / passBytes);
        answer.put("ns_per_byte_open", openNs / passBytes);
    }

    /** As in TLS, each record's nonce is its number. */
    private AlgorithmParameterSpec nonce(int pass, long record) {
        byte[] nonce = ByteBuffer.allocate(12).putInt(pass).putLong(record).array();
        return key.getAlgorithm().equals("AES") ? new GCMParameterSpec(TAG_BITS, nonce) : new IvParameterSpec(nonce);
    }
}
