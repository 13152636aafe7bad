package dev.hapax.once.agent;

import com.fasterxml.jackson.databind.JsonNode;
import dev.hapax.once.Answer;
import dev.hapax.once.Event;
import dev.hapax.once.FailedForGood;
import dev.hapax.once.Refused;
import java.util.function.Consumer;

/** What a command says is done: each member in its order. */
record Work(JsonNode members) {
    /** An error of the work's own. */
    static final class Raised extends RuntimeException {
        Raised(String message) {
            super(message);
        }
    }

    /** Writes an effect in the transaction. */
    interface Writer {
        void write(String name) throws Exception;
    }

    /** For an operation. */
    Answer run(Writer writer, Consumer<Event> emitter) throws Exception {
        begin(writer, emitter);
        if (members.has("refuse")) {
            throw new Refused(Command.answer(members.get("refuse")));
        }
        return Command.answer(members.path("answer"));
    }

    /** For a message. */
    void handle(Writer writer, Consumer<Event> emitter) throws Exception {
        begin(writer, emitter);
        if (members.has("refuse")) {
            throw new FailedForGood(Command.text(members.get("refuse"), "reason"));
        }
    }

    private void begin(Writer writer, Consumer<Event> emitter) throws Exception {
        Thread.sleep(members.path("pause_ms").asLong(0));
        if (members.has("write")) {
            writer.write(Command.text(members, "write"));
        }
        if (members.has("emit")) {
            JsonNode event = members.get("emit");
            emitter.accept(Event.of(Command.text(event, "topic"), Command.text(event, "key"), Command.text(event, "payload")));
        }
        if (members.path("die").asBoolean(false)) {
            new ProcessBuilder("kill", "-9", String.valueOf(ProcessHandle.current().pid())).start().waitFor();
            Thread.sleep(Long.MAX_VALUE);
        }
        if (members.has("raise")) {
            throw new Raised(Command.text(members, "raise"));
        }
    }
}
