package dev.hapax.once.vectors;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import dev.hapax.once.Answer;
import dev.hapax.once.Hapax;
import dev.hapax.once.Operation;
import dev.hapax.once.testing.Database;
import dev.hapax.once.testing.Vectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What is stored of operations and answers. */
class OperationVectorsTest {
    private static Database database;
    private static Hapax hapax;

    @BeforeAll
    static void create() {
        database = Database.create();
        hapax = Hapax.on(database.pool());
    }

    @AfterAll
    static void drop() {
        database.close();
    }

    static Stream<JsonNode> operations() {
        return Vectors.cases("operations.json");
    }

    @ParameterizedTest
    @MethodSource("operations")
    void anOperationHasOneId(JsonNode vector) {
        hapax.once(Operation.of(text(vector, "tenant"), text(vector, "scope"), text(vector, "key")), connection -> Answer.of(200));
        String id = text(vector, "operation");
        assertEquals("1", database.text("SELECT count(*) FROM hapax.operations WHERE replace(id::text, '-', '') = '" + id + "'"));
    }

    static Stream<JsonNode> fingerprints() {
        return Vectors.cases("fingerprints.json");
    }

    @ParameterizedTest
    @MethodSource("fingerprints")
    void aRequestHasOneFingerprint(JsonNode vector) {
        database.run("UPDATE hapax.meta SET salt = decode('" + text(vector, "salt") + "', 'hex')");
        String key = "fingerprint-" + Math.abs(vector.hashCode());
        Operation operation = Operation.of(text(vector, "tenant"), "scope", key)
                .at(text(vector, "method"), text(vector, "path"), text(vector, "query"))
                .request(text(vector, "body"));
        hapax.once(operation, connection -> Answer.of(200));
        String stored = database.text("SELECT encode(fingerprint, 'hex') FROM hapax.operations WHERE key = '" + key + "'");
        assertEquals(text(vector, "fingerprint"), stored);
    }

    static Stream<JsonNode> statuses() {
        return Vectors.cases("statuses.json");
    }

    @ParameterizedTest
    @MethodSource("statuses")
    void anAnswerIsKeptAlike(JsonNode vector) throws Exception {
        int status = vector.get("status").asInt();
        String key = "status-" + status;
        Answer answer = hapax.once(Operation.of("shop", "statuses", key), connection -> {
            Database.write(connection, key);
            return Answer.of(status);
        });
        assertEquals(status, answer.status());
        String end = text(vector, "end");
        assertEquals(end.equals("finish") ? 1 : 0, database.effects(key));
        assertEquals(end.equals("rollback") ? 0 : 1, database.records(key));
        assertEquals(!end.equals("rollback"), answer.expiresAt().isPresent());
    }

    private static String text(JsonNode vector, String member) {
        return vector.get(member).asText();
    }
}
