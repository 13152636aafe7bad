package dev.hapax.once.agent;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.hapax.once.HapaxException;
import dev.hapax.once.testing.Database;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Uses the SDK as it is told, a command a line: see sdk/conformance.md. */
public final class Agent {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Driver driver;

    private Agent(Driver driver) {
        this.driver = driver;
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> options = Map.of(args[0], args[1], args[2], args[3]);
        PrintStream out = new PrintStream(System.out, true, UTF_8);
        System.setOut(System.err);
        // COMMIT is sent as a text each time, so that a proxy can recognize it.
        String url = options.get("--database") + "?prepareThreshold=0";
        Agent agent = new Agent(Driver.of(options.get("--driver"), Database.pool(url)));
        out.println("{\"ready\": true}");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            out.println(agent.answer(JSON.readTree(line)));
        }
        System.exit(0);
    }

    /** What a command comes to. */
    private JsonNode answer(JsonNode command) {
        try {
            return switch (command.path("do").asText()) {
                case "once" -> Command.told(driver.once(command));
                case "within" -> Command.told(driver.within(command, command.path("how").asText()));
                case "storm" -> storm(command);
                case "deliver" -> Command.told(driver.deliver(command));
                case "schema_version" -> {
                    driver.hapax().checkSchema();
                    yield JSON.createObjectNode().put("ok", true);
                }
                case "serve" -> JSON.createObjectNode().put("port", HttpService.serve(driver.hapax()));
                default -> error("unknown_command", "no such command: " + command);
            };
        } catch (HapaxException error) {
            return told(error);
        } catch (Exception error) {
            return error(error instanceof Work.Raised ? "raised" : error.getClass().getName(), String.valueOf(error.getMessage()));
        }
    }

    private JsonNode storm(JsonNode command) throws Exception {
        ObjectNode once = command.deepCopy();
        once.put("do", "once");
        int times = command.path("times").asInt();
        ExecutorService threads = Executors.newFixedThreadPool(times);
        List<Future<JsonNode>> calls = new ArrayList<>();
        for (int call = 0; call < times; call++) {
            calls.add(threads.submit(() -> answer(once)));
        }
        ObjectNode told = JSON.createObjectNode();
        for (Future<JsonNode> call : calls) {
            told.withArray("answers").add(call.get());
        }
        threads.shutdown();
        return told;
    }

    private static JsonNode told(HapaxException error) {
        JsonNode told = error(error.kind(), error.getMessage());
        ObjectNode members = (ObjectNode) told.get("error");
        if (error instanceof HapaxException.Busy busy) {
            members.put("retry_after", busy.retryAfter().toSeconds());
        }
        if (error instanceof HapaxException.Mismatch mismatch) {
            mismatch.differs().forEach(members.putArray("differs")::add);
        }
        return told;
    }

    private static JsonNode error(String kind, String message) {
        ObjectNode told = JSON.createObjectNode();
        told.putObject("error").put("kind", kind).put("message", message).putNull("retry_after").putNull("differs");
        return told;
    }
}
