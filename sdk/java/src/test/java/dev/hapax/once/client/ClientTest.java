package dev.hapax.once.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.hapax.once.internal.HttpDate;
import dev.hapax.once.testing.Vectors;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The client against a server that says what it is told to. */
class ClientTest {
    private static final Map<String, String> PROBLEM = Map.of("Content-Type", "application/problem+json");

    private final Deque<Said> said = new ArrayDeque<>();
    private final Set<String> keys = new HashSet<>();
    private HttpServer server;
    private Client client;

    /** An answer; one without a status is none: the connection is closed. */
    private record Said(int status, Map<String, String> headers, String body) {
        static final Said NOTHING = new Said(0, Map.of(), "");
        /** The head of a 201, and half of its body. */
        static final Said HALF = new Said(-201, Map.of(), "pa");

        static Said of(int status) {
            return new Said(status, Map.of(), "");
        }
    }

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", this::answer);
        server.start();
        client = Client.on(HttpClient.newHttpClient())
                .attempts(3)
                .deadline(Duration.ofMillis(600))
                .attemptTimeout(Duration.ofMillis(200))
                .firstPauseMax(Duration.ofMillis(2));
    }

    @AfterEach
    void stop() {
        server.stop(0);
    }

    /** The next of what is to be said, and the last of it from then on. */
    private synchronized void answer(HttpExchange exchange) throws IOException {
        keys.add(exchange.getRequestHeaders().getFirst("Idempotency-Key"));
        assertEquals("never", exchange.getRequestHeaders().getFirst("Hapax-Retry"));
        assertTrue(Long.parseLong(exchange.getRequestHeaders().getFirst("Hapax-Deadline")) <= 200);
        Said next = said.size() > 1 ? said.poll() : said.peek();
        byte[] body = next.body().getBytes();
        if (next.status() != 0) {
            next.headers().forEach(exchange.getResponseHeaders()::set);
            long length = next.status() < 0 ? 2L * body.length : body.length;
            exchange.sendResponseHeaders(Math.abs(next.status()), length == 0 ? -1 : length);
            exchange.getResponseBody().write(body);
        }
        exchange.close();
    }

    private Result pursue(Said... answers) throws InterruptedException {
        said.clear();
        said.addAll(List.of(answers));
        URI address = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/payments");
        return client.send(HttpRequest.newBuilder(address).POST(BodyPublishers.ofString("{}")).build());
    }

    static Stream<JsonNode> answers() {
        return Vectors.cases("answers.json");
    }

    @ParameterizedTest
    @MethodSource("answers")
    void anAnswerMeansTheSameToEveryClient(JsonNode vector) throws InterruptedException {
        Map<String, String> headers = new HashMap<>();
        vector.get("headers").fields().forEachRemaining(header -> headers.put(header.getKey(), header.getValue().asText()));
        Said answer = new Said(vector.get("status").asInt(), headers, "");
        assertEquals(vector.get("repeat").asBoolean(), pursue(answer, Said.of(200)).attempts() > 1);
        assertEquals(conclusion(vector, "conclusion"), pursue(answer).conclusion());
        assertEquals(conclusion(vector, "conclusion_after_silence"), pursue(Said.NOTHING, answer).conclusion());
    }

    private static Conclusion conclusion(JsonNode vector, String member) {
        return Conclusion.valueOf(vector.get(member).asText().toUpperCase().replace(' ', '_'));
    }

    @Test
    void allAttemptsHaveOneKey() throws Exception {
        Result result = pursue(Said.of(503), Said.NOTHING, new Said(201, Map.of("Idempotent-Replayed", "true"), "paid"));
        assertEquals("paid", new String(result.done().body()));
        assertEquals(3, result.attempts());
        assertTrue(result.isReplayed());
        assertEquals(Set.of("\"" + result.key() + "\""), keys);
    }

    @Test
    void ourRefusalsAreReadFromTheirMarkOrTheirDocument() throws InterruptedException {
        Said unavailable = new Said(503, with("Hapax-Refusal", "store-unavailable"), "");
        assertEquals(Conclusion.GAVE_UP, pursue(unavailable).conclusion());
        Said inDoubt = new Said(409, PROBLEM, "{\"type\": \"/errors/outcome-in-doubt\", \"code\": \"outcome-in-doubt\"}");
        Result result = pursue(inDoubt);
        assertEquals(Conclusion.UNKNOWN, result.conclusion());
        assertEquals(1, result.attempts());
        Said reused = new Said(422, with("Hapax-Refusal", "key-reused"), "");
        assertEquals(Conclusion.REFUSED, pursue(Said.NOTHING, reused).conclusion());
        Said foreign = new Said(503, PROBLEM, "{\"type\": \"/errors/overloaded\"}");
        assertEquals(Conclusion.UNKNOWN, pursue(foreign).conclusion());
    }

    private static Map<String, String> with(String name, String value) {
        Map<String, String> headers = new HashMap<>(PROBLEM);
        headers.put(name, value);
        return headers;
    }

    @Test
    void aKeyInFlightUsesUpNoAttempt() throws InterruptedException {
        Said inFlight = new Said(409, with("Hapax-Refusal", "key-in-flight"), "");
        Result result = pursue(inFlight, inFlight, inFlight, inFlight, inFlight, Said.of(201));
        assertEquals(Conclusion.DONE, result.conclusion());
        assertEquals(6, result.attempts());
    }

    @Test
    void aServerThatSaysYesAndThenNoIsNotBelieved() throws InterruptedException {
        Said no = new Said(402, Map.of("Idempotent-Replayed", "true"), "");
        assertEquals(Conclusion.UNKNOWN, pursue(Said.HALF, no).conclusion());
        assertEquals(Conclusion.DONE, pursue(Said.HALF, Said.of(201)).conclusion());
        assertEquals(Conclusion.REFUSED, pursue(Said.NOTHING, no).conclusion());
    }

    @Test
    void retryAfterIsWaitedForAndOneBeyondTheDeadlineEndsIt() throws InterruptedException {
        long start = System.nanoTime();
        client = client.deadline(Duration.ofSeconds(5));
        assertEquals(2, pursue(new Said(503, Map.of("Retry-After", "1"), ""), Said.of(200)).attempts());
        assertTrue(Duration.ofNanos(System.nanoTime() - start).toMillis() >= 1000);
        assertEquals(1, pursue(new Said(503, Map.of("Retry-After", "999999999999"), "")).attempts());
        String inAMinute = HttpDate.format(Instant.now().plusSeconds(60));
        assertEquals(1, pursue(new Said(503, Map.of("Retry-After", inAMinute), "")).attempts());
    }

    @Test
    void whereNobodyListensItGivesUp() throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port)).POST(BodyPublishers.noBody()).build();
        Result result = client.send(request);
        assertEquals(Conclusion.GAVE_UP, result.conclusion());
        assertEquals(3, result.attempts());
        NotDone error = assertThrows(NotDone.class, result::done);
        assertTrue(error.getMessage().contains("gave up"));
    }

    @Test
    void whoNeverAnswersLeavesADoubt() throws Exception {
        try (ServerSocket silent = new ServerSocket(0)) {
            URI address = URI.create("http://127.0.0.1:" + silent.getLocalPort());
            Result result = client.send(HttpRequest.newBuilder(address).POST(BodyPublishers.noBody()).build(), "charge-42");
            assertEquals(Conclusion.UNKNOWN, result.conclusion());
            assertEquals("charge-42", result.key());
            assertFalse(result.response().isPresent());
        }
    }

    @Test
    void aClientThatFollowsRedirectsIsRefused() {
        HttpClient following = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.ALWAYS).build();
        assertThrows(IllegalArgumentException.class, () -> Client.on(following));
    }
}
