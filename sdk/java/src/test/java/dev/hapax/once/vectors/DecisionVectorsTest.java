package dev.hapax.once.vectors;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.hapax.once.Answer;
import dev.hapax.once.Hapax;
import dev.hapax.once.HapaxException;
import dev.hapax.once.http.Incoming;
import dev.hapax.once.http.Protection;
import dev.hapax.once.http.Refusal;
import dev.hapax.once.testing.Database;
import dev.hapax.once.testing.Vectors;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What a client hears of what the database decides or fails with. Its functions say here what the vectors have. */
class DecisionVectorsTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String SIGNATURE = "hapax.begin(tenant text, scope text, key text,"
            + " request anycompatible DEFAULT ''::bytea, method text DEFAULT '', path text DEFAULT '', query text DEFAULT '',"
            + " retention interval DEFAULT '24 hours', tombstone interval DEFAULT '0', wait interval DEFAULT '2 seconds')"
            + " RETURNS hapax.begun LANGUAGE plpgsql AS ";

    private static Database database;
    private static Protection protection;

    @BeforeAll
    static void create() {
        database = Database.create();
        protection = Protection.by(Hapax.on(database.pool()));
    }

    @AfterAll
    static void drop() {
        database.close();
    }

    @AfterEach
    void begunAsEver() {
        database.run("DROP TRIGGER IF EXISTS losing ON effects");
        database.run("CREATE OR REPLACE FUNCTION " + SIGNATURE
                + "$$ BEGIN RETURN hapax.begin_bytes($1, $2, $3, hapax.as_bytes($4), $5, $6, $7, $8, $9, $10); END $$");
    }

    static Stream<JsonNode> decisions() {
        return Vectors.cases("decisions.json").filter(vector -> !vector.get("answer").isNull());
    }

    @ParameterizedTest
    @MethodSource("decisions")
    void aDecisionIsToldAlike(JsonNode vector) throws Exception {
        decide(vector.get("row"));
        Answer answer = ask("k");
        JsonNode expected = vector.get("answer");
        assertEquals(expected.get("status").asInt(), answer.status());
        if (expected.has("code")) {
            checkProblem(expected, answer);
        } else {
            assertTrue(answer.replayed());
            assertEquals(expected.get("body").asText(), answer.text());
            Map<String, List<String>> headers = new HashMap<>();
            expected.get("headers").forEach(header ->
                    headers.computeIfAbsent(header.get(0).asText(), name -> new ArrayList<>()).add(header.get(1).asText()));
            assertEquals(headers, answer.headers());
        }
    }

    @Test
    void whatDiffersIsInTheDocument() throws Exception {
        decide(JSON.readTree("{\"decision\": \"mismatch\", \"differs\": [\"query\", \"body\"]}"));
        assertEquals(List.of("query", "body"), Vectors.texts(JSON.readTree(ask("k").body()).get("differs")));
    }

    @Test
    void aDecisionThatIsNotKnownIsAnError() throws Exception {
        decide(JSON.readTree("{\"decision\": \"dance\"}"));
        assertThrows(HapaxException.Unexpected.class, () -> ask("k"));
    }

    static Stream<JsonNode> errors() {
        return Vectors.cases("errors.json");
    }

    @ParameterizedTest
    @MethodSource("errors")
    void anErrorIsToldAlike(JsonNode vector) throws Exception {
        String state = vector.get("sqlstate").asText();
        if (state.equals("lost during COMMIT")) {
            loseCommits();
        } else {
            database.run("CREATE OR REPLACE FUNCTION " + SIGNATURE
                    + "$$ BEGIN RAISE EXCEPTION USING ERRCODE = '" + state + "'; END $$");
        }
        Answer answer = ask("error-" + state.replace(' ', '-'));
        checkProblem(vector, answer);
        assertEquals(0, database.effects("error"));
    }

    static Stream<JsonNode> problems() {
        return Vectors.cases("problems.json");
    }

    @Test
    void everyRefusalIsOneOfTheVectors() {
        Map<String, JsonNode> known = problems().collect(Collectors.toMap(vector -> vector.get("code").asText(), Function.identity()));
        for (Refusal refusal : Refusal.values()) {
            JsonNode document = known.get(refusal.code()).get("document");
            assertEquals(document.get("title").asText(), refusal.title());
            assertEquals(document.get("status").asInt(), refusal.status());
        }
    }

    @Test
    void aRefusalIsTheSameDocumentEverywhere() throws Exception {
        Answer answer = protection.answer(request(List.of()), "shop", connection -> Answer.of(201));
        JsonNode vector = problems().filter(one -> one.get("code").asText().equals("key-missing")).findFirst().orElseThrow();
        for (JsonNode header : vector.get("headers")) {
            assertEquals(List.of(header.get(1).asText()), answer.headers().get(header.get(0).asText()));
        }
        assertEquals(vector.get("headers").size(), answer.headers().size());
        JsonNode document = JSON.readTree(answer.body());
        vector.get("document").fields().forEachRemaining(member -> {
            if (!member.getKey().equals("detail")) {
                assertEquals(member.getValue(), document.get(member.getKey()));
            }
        });
        assertEquals(vector.get("document").size(), document.size());
    }

    private static void checkProblem(JsonNode expected, Answer answer) throws Exception {
        JsonNode document = JSON.readTree(answer.body());
        for (String member : List.of("status", "code", "title", "detail")) {
            assertEquals(expected.get(member), document.get(member));
        }
        JsonNode retryAfter = expected.get("retry_after");
        assertEquals(retryAfter.isNull() ? null : List.of(retryAfter.asText()), answer.headers().get("retry-after"));
        assertEquals(List.of("application/problem+json"), answer.headers().get("content-type"));
        assertFalse(answer.replayed());
    }

    private static void decide(JsonNode row) {
        String quoted = row.toString().replace("'", "''");
        database.run("CREATE OR REPLACE FUNCTION " + SIGNATURE
                + "$$ BEGIN RETURN jsonb_populate_record(NULL::hapax.begun, '" + quoted + "'); END $$");
    }

    /** As if the connection were gone when the transaction is to be committed. */
    private static void loseCommits() {
        database.run("CREATE OR REPLACE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS"
                + " $$ BEGIN RAISE EXCEPTION USING ERRCODE = '08006'; END $$");
        database.run("CREATE CONSTRAINT TRIGGER losing AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED"
                + " FOR EACH ROW EXECUTE FUNCTION lose()");
    }

    private static Answer ask(String key) throws Exception {
        return protection.answer(request(List.of(key)), "shop", connection -> {
            Database.write(connection, "error");
            return Answer.of(201);
        });
    }

    private static Incoming request(List<String> keys) {
        return new Incoming("POST", "/payments", "", keys, "", new byte[0]);
    }
}
