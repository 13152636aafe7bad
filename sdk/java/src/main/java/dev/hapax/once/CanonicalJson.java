package dev.hapax.once;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.hapax.once.internal.Json;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * JSON in one spelling, so that equal values are equal bytes: members in order, numbers as exact decimals. Two amounts
 * that a floating point number cannot tell apart are still two amounts.
 */
public final class CanonicalJson {
    private CanonicalJson() {}

    /**
     * The one spelling of this text, without the members and elements at these JSON pointers ({@code /sent_at}); nothing
     * if it has none: it is no JSON, or readers may understand it in two ways.
     */
    public static Optional<byte[]> of(byte[] text, Collection<String> ignored) {
        try {
            String decoded = UTF_8.newDecoder().decode(ByteBuffer.wrap(text)).toString();
            return Optional.of(Json.text(inOrder(Json.read(decoded), "", ignored)).getBytes(UTF_8));
        } catch (CharacterCodingException | Json.NotOneValue error) {
            return Optional.empty();
        }
    }

    /** Members are ordered as UTF-16, which is how strings compare. */
    private static Object inOrder(Object value, String pointer, Collection<String> ignored) {
        if (value instanceof Map<?, ?> members) {
            Map<String, Object> kept = new TreeMap<>();
            members.forEach((name, member) -> {
                String place = pointer + "/" + name.toString().replace("~", "~0").replace("/", "~1");
                if (!ignored.contains(place)) {
                    kept.put(name.toString(), inOrder(member, place, ignored));
                }
            });
            return kept;
        }
        if (value instanceof List<?> elements) {
            List<Object> kept = new ArrayList<>();
            for (int index = 0; index < elements.size(); index++) {
                String place = pointer + "/" + index;
                if (!ignored.contains(place)) {
                    kept.add(inOrder(elements.get(index), place, ignored));
                }
            }
            return kept;
        }
        return value;
    }
}
