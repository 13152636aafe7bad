package dev.hapax.once.webhook;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.hapax.once.webhook.Unverified.Reason;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.function.Function;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Whether a webhook was sent by somebody who knows the secret, and lately: by the rules of Standard Webhooks.
 *
 * <p>What is genuine may still have been sent before: act on each id once, with an {@link dev.hapax.once.Inbox} or as an
 * operation.
 */
public final class Webhooks {
    public static final String ID = "webhook-id";
    public static final String TIMESTAMP = "webhook-timestamp";
    public static final String SIGNATURE = "webhook-signature";

    private static final String PREFIX = "whsec_";
    private static final int SECRET_BYTES_MIN = 24;
    private static final int SECRET_BYTES_MAX = 64;
    /** Nobody rotates more secrets than that. */
    private static final int SIGNATURES_MAX = 16;
    private static final String VERSION = "v1,";
    private static final Pattern DIGITS = Pattern.compile("[0-9]{1,18}");

    private final List<SecretKeySpec> secrets;
    private final Duration tolerance;

    private Webhooks(List<SecretKeySpec> secrets, Duration tolerance) {
        this.secrets = secrets;
        this.tolerance = tolerance;
    }

    /**
     * Signed with one of these secrets ({@code whsec_…}), not more than five minutes ago. Give the old and the new one while
     * they change.
     */
    public static Webhooks signedWith(String... secrets) {
        return new Webhooks(List.of(secrets).stream().map(Webhooks::secret).toList(), Duration.ofMinutes(5));
    }

    /** The same, but the clocks may be so far apart, transport included. */
    public Webhooks tolerance(Duration tolerance) {
        return new Webhooks(secrets, tolerance);
    }

    /** The secret is not repeated in the error. */
    private static SecretKeySpec secret(String text) {
        byte[] bytes;
        try {
            bytes = Base64.getDecoder().decode(text.startsWith(PREFIX) ? text.substring(PREFIX.length()) : text);
        } catch (IllegalArgumentException error) {
            bytes = new byte[0];
        }
        if (bytes.length < SECRET_BYTES_MIN || bytes.length > SECRET_BYTES_MAX) {
            throw new IllegalArgumentException("Not a secret: write whsec_ and 24 to 64 bytes in base64.");
        }
        return new SecretKeySpec(bytes, "HmacSHA256");
    }

    /**
     * The id of a webhook that is genuine: the same in every attempt, so it is what to act on once.
     *
     * @param headers all values of the header of a name
     * @param body as it was received, byte for byte
     */
    public String verify(Function<String, ? extends Collection<String>> headers, byte[] body, Instant now) throws Unverified {
        String id = single(headers, ID);
        String timestamp = single(headers, TIMESTAMP);
        Instant at = sentAt(timestamp);
        byte[] head = (id + "." + at.getEpochSecond() + ".").getBytes(UTF_8);
        if (!isSigned(single(headers, SIGNATURE), head, body)) {
            throw new Unverified(Reason.FORGED, "No signature fits: it was sent by somebody else, or changed on its way.");
        }
        Duration apart = Duration.between(at, now).abs();
        if (apart.compareTo(tolerance) > 0) {
            throw new Unverified(Reason.UNTIMELY, "It was sent " + apart.toSeconds() + " s away from now.");
        }
        return id;
    }

    private static Instant sentAt(String timestamp) throws Unverified {
        try {
            if (DIGITS.matcher(timestamp).matches()) {
                return Instant.ofEpochSecond(Long.parseLong(timestamp));
            }
        } catch (DateTimeException beyond) {
            // No clock ever says so.
        }
        throw unsigned(TIMESTAMP);
    }

    /** How long it takes says nothing about the secrets: all of them are tried. */
    private boolean isSigned(String signatures, byte[] head, byte[] body) {
        String[] each = signatures.strip().split("[ \t]+");
        boolean isGenuine = false;
        for (int at = 0; at < Math.min(each.length, SIGNATURES_MAX); at++) {
            if (each[at].startsWith(VERSION)) {
                byte[] given = decoded(each[at].substring(VERSION.length()));
                for (SecretKeySpec secret : secrets) {
                    isGenuine |= MessageDigest.isEqual(mac(secret, head, body), given);
                }
            }
        }
        return isGenuine;
    }

    private static byte[] decoded(String signature) {
        try {
            return Base64.getDecoder().decode(signature);
        } catch (IllegalArgumentException error) {
            return new byte[0];
        }
    }

    private static byte[] mac(SecretKeySpec secret, byte[] head, byte[] body) {
        try {
            Mac mac = Mac.getInstance(secret.getAlgorithm());
            mac.init(secret);
            mac.update(head);
            return mac.doFinal(body);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("Every Java has HMAC-SHA256.", error);
        }
    }

    private static String single(Function<String, ? extends Collection<String>> headers, String name) throws Unverified {
        Collection<String> values = headers.apply(name);
        if (values == null || values.size() != 1) {
            throw unsigned(name);
        }
        return values.iterator().next();
    }

    private static Unverified unsigned(String header) {
        return new Unverified(Reason.UNSIGNED, "The header " + header + " is not there once and readable.");
    }
}
