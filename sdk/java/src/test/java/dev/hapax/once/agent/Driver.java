package dev.hapax.once.agent;

import com.fasterxml.jackson.databind.JsonNode;
import dev.hapax.once.Answer;
import dev.hapax.once.Hapax;
import dev.hapax.once.Message;
import dev.hapax.once.Receipt;
import java.sql.Connection;
import javax.sql.DataSource;

/** A way to use the SDK. */
interface Driver {
    static Driver of(String name, DataSource source) {
        return switch (name) {
            case "jdbc" -> new JdbcDriver(Hapax.on(source), source);
            case "spring" -> SpringDriver.on(source);
            default -> throw new IllegalArgumentException("no such driver: " + name);
        };
    }

    Hapax hapax();

    Answer once(JsonNode command) throws Exception;

    Answer within(JsonNode command, String how) throws Exception;

    void handle(Work work, Connection connection) throws Exception;

    /** Another object on the same database. */
    Driver another();

    /** Asks for what is nested in the work of a command. */
    default void nest(JsonNode command) throws Exception {
        JsonNode nested = command.path("work").path("nested");
        if (!nested.isMissingNode()) {
            (nested.path("by").asText().equals("another") ? another() : this).once(nested);
        }
    }

    default Receipt deliver(JsonNode command) {
        Message message = Message.of(Command.text(command, "message_id"), Command.text(command, "content"));
        return hapax().inbox(Command.text(command, "consumer"))
                .attempts(command.path("attempts_max").asInt())
                .receive(message, connection -> handle(new Work(command.path("work")), connection));
    }
}
