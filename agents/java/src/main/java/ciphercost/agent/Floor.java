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

/** floor: what a cipher alone costs a byte here, by Java's own library, as a TLS record layer uses it. */
final class Floor {
    private static final int RECORD_BYTES = 16 * 1024;
    private static final int TAG_BITS = 128;
    /** A record's header is authenticated with it. */
    private static final byte[] HEADER = {0x17, 3, 3, 0x40, 0x11};
    /** The bytes are dealt out to this many passes, of which the fastest counts: what else the machine does only adds. */
    private static final int PASSES = 5;
    /** Until compiled code runs, a cipher costs many times as much. */
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

    /** Seals and opens records of 16 KiB under one key until at least `bytes` have passed. */
    static void measure(String cipher, long bytes, Map<String, Object> answer) throws Failure {
        Floor floor = switch (cipher) {
            case "aes256-gcm" -> new Floor("AES/GCM/NoPadding", "AES", 32);
            case "aes128-gcm" -> new Floor("AES/GCM/NoPadding", "AES", 16);
            case "chacha20" -> new Floor("ChaCha20-Poly1305", "ChaCha20", 32);
            default -> throw Failure.badMessage("cipher: \"" + cipher + "\" is none of aes256-gcm, aes128-gcm, chacha20");
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
        // Two, by turns: Java refuses a nonce that follows itself, in opening too.
        byte[][] sealed = new byte[2][RECORD_BYTES + TAG_BITS / 8];
        byte[] opened = new byte[RECORD_BYTES + TAG_BITS / 8];
        long sealNs = Long.MAX_VALUE;
        long openNs = Long.MAX_VALUE;
        for (int pass = -1; pass < PASSES; pass++) {
            // The first pass is the compiler's.
            long count = pass < 0 ? WARM_RECORDS : records;
            long begin = THREADS.getCurrentThreadCpuTime();
            for (long record = 0; record < count; record++) {
                sealing.init(Cipher.ENCRYPT_MODE, key, nonce(pass, record));
                sealing.updateAAD(HEADER);
                sealing.doFinal(clear, 0, RECORD_BYTES, sealed[(int) (record & 1)]);
            }
            long middle = THREADS.getCurrentThreadCpuTime();
            // All records have one length, and opening the last two again and again costs the same as opening each.
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

    /** Each record has a nonce of its own, as in TLS: the record's number. */
    private AlgorithmParameterSpec nonce(int pass, long record) {
        byte[] nonce = ByteBuffer.allocate(12).putInt(pass).putLong(record).array();
        return key.getAlgorithm().equals("AES") ? new GCMParameterSpec(TAG_BITS, nonce) : new IvParameterSpec(nonce);
    }
}
