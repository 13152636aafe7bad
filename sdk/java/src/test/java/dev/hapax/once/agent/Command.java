package dev.hapax.once.agent;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.hapax.once.Answer;
import dev.hapax.once.Isolation;
import dev.hapax.once.Operation;
import dev.hapax.once.Options;
import dev.hapax.once.Receipt;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** What is read from commands, and written as answers. */
final class Command {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Command() {}

    static Operation operation(JsonNode command) {
        return Operation.of(text(command, "tenant"), text(command, "scope"), text(command, "key"))
                .at(text(command, "method"), text(command, "path"), text(command, "query"))
                .request(text(command, "request"));
    }

    static String text(JsonNode command, String member) {
        return command.path(member).asText("");
    }

    static Options options(JsonNode command) {
        Options options = Options.usual();
        if (command.has("wait_ms")) {
            options = options.patience(Duration.ofMillis(command.get("wait_ms").asLong()));
        }
        if (command.has("retention_s")) {
            options = options.retention(Duration.ofSeconds(command.get("retention_s").asLong()));
        }
        if (command.has("tombstone_s")) {
            options = options.tombstone(Duration.ofSeconds(command.get("tombstone_s").asLong()));
        }
        if (command.has("isolation")) {
            String level = text(command, "isolation").toUpperCase(Locale.ROOT).replace(' ', '_');
            options = options.isolation(Isolation.valueOf(level));
        }
        return options;
    }

    static Answer answer(JsonNode node) {
        Map<String, List<String>> headers = new LinkedHashMap<>();
        node.path("headers").fields().forEachRemaining(header -> {
            List<String> values = new ArrayList<>();
            header.getValue().forEach(value -> values.add(value.asText()));
            headers.put(header.getKey(), values.isEmpty() ? List.of(header.getValue().asText()) : values);
        });
        return Answer.of(node.path("status").asInt()).headers(headers).body(text(node, "body").getBytes(UTF_8));
    }

    static JsonNode told(Answer answer) {
        ObjectNode told = JSON.createObjectNode();
        ObjectNode members = told.putObject("answer");
        members.put("status", answer.status());
        ObjectNode headers = members.putObject("headers");
        answer.headers().forEach((name, values) ->
                headers.set(name, JSON.valueToTree(values.size() == 1 ? values.get(0) : values)));
        members.put("body", answer.text()).put("replayed", answer.replayed());
        return told;
    }

    static JsonNode told(Receipt receipt) {
        ObjectNode told = JSON.createObjectNode();
        return told.put("outcome", receipt.isDone() ? "done" : "again").put("acted", receipt.acted());
    }
}
