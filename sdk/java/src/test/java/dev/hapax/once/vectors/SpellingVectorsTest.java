package dev.hapax.once.vectors;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import dev.hapax.once.CanonicalJson;
import dev.hapax.once.http.IdempotencyKey;
import dev.hapax.once.http.Problem;
import dev.hapax.once.testing.Vectors;
import dev.hapax.once.webhook.Unverified;
import dev.hapax.once.webhook.Webhooks;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import java.util.stream.Stream;

/** What is read and written without a database. */
class SpellingVectorsTest {
    static Stream<JsonNode> keys() {
        return Vectors.cases("keys.json");
    }

    @ParameterizedTest
    @MethodSource("keys")
    void aKeyIsReadAlike(JsonNode vector) throws Problem {
        List<String> lines = Vectors.texts(vector.get("lines"));
        if (vector.has("key")) {
            assertEquals(vector.get("key").asText(), IdempotencyKey.read(lines));
        } else {
            Problem problem = assertThrows(Problem.class, () -> IdempotencyKey.read(lines));
            assertEquals(vector.get("refused").asText(), problem.refusal().code());
        }
    }

    static Stream<JsonNode> quoting() {
        return Vectors.cases("quoting.json");
    }

    @ParameterizedTest
    @MethodSource("quoting")
    void aKeyIsWrittenSoThatItIsReadAsItself(JsonNode vector) throws Problem {
        String line = IdempotencyKey.quote(vector.get("key").asText());
        assertEquals(vector.get("line").asText(), line);
        assertEquals(vector.get("key").asText(), IdempotencyKey.read(List.of(line)));
    }

    static Stream<JsonNode> canonicalJson() {
        return Vectors.cases("canonical-json.json");
    }

    @ParameterizedTest
    @MethodSource("canonicalJson")
    void aJsonValueHasOneSpelling(JsonNode vector) {
        byte[] text = vector.get("text").asText().getBytes(UTF_8);
        String spelled = CanonicalJson.of(text, Vectors.texts(vector.get("ignored"))).map(bytes -> new String(bytes, UTF_8)).orElse(null);
        assertEquals(vector.get("canonical").isNull() ? null : vector.get("canonical").asText(), spelled);
    }

    static Stream<JsonNode> signatures() {
        return Vectors.cases("signatures.json");
    }

    @ParameterizedTest
    @MethodSource("signatures")
    void aWebhookIsBelievedAlike(JsonNode vector) {
        Webhooks webhooks = Webhooks.signedWith(Vectors.texts(vector.get("secrets")).toArray(String[]::new));
        Map<String, String> headers = Map.of(
                Webhooks.ID, vector.get("id").asText(),
                Webhooks.TIMESTAMP, vector.get("timestamp").asText(),
                Webhooks.SIGNATURE, vector.get("signature").asText());
        Instant now = Instant.ofEpochSecond(vector.get("now").asLong());
        String verified;
        try {
            String id = webhooks.verify(name -> List.of(headers.get(name)), vector.get("body").asText().getBytes(UTF_8), now);
            assertEquals(vector.get("id").asText(), id);
            verified = "genuine";
        } catch (Unverified unverified) {
            verified = unverified.reason().name().toLowerCase(Locale.ROOT);
        }
        assertEquals(vector.get("verified").asText(), verified);
    }
}
