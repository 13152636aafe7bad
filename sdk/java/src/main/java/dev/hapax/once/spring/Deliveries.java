package dev.hapax.once.spring;

import dev.hapax.once.Handler;
import dev.hapax.once.HapaxException;
import dev.hapax.once.Inbox;
import dev.hapax.once.Message;
import dev.hapax.once.Receipt;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** Hands deliveries of any broker to an inbox, and tells the broker what became of them. */
record Deliveries(Inbox inbox) {
    private static final Logger LOG = System.getLogger(Deliveries.class.getName());
    private static final Duration TROUBLE_PAUSE = Duration.ofSeconds(5);
    /** Where senders say which message it is, as the bindings of CloudEvents spell it. */
    private static final List<String> ID_HEADERS = List.of("ce-id", "ce_id", "cloudEvents:id", "cloudEvents_id");
    private static final List<String> KEY_HEADERS =
            List.of("ce-subject", "ce_subject", "cloudEvents:subject", "cloudEvents_subject");

    /** What is wrong with this consumer, and with no message, leaves the message to come again. */
    void receive(Supplier<Message> message, Handler handler, Runnable done, Consumer<Duration> again) {
        Receipt receipt;
        try {
            Message delivered = message.get();
            receipt = inbox.receive(delivered, handler);
            receipt.failure().ifPresent(failure -> LOG.log(Level.WARNING, delivered + " failed", failure));
        } catch (HapaxException error) {
            LOG.log(Level.ERROR, "a message could not be received, and comes again", error);
            again.accept(TROUBLE_PAUSE);
            return;
        }
        if (receipt.isDone()) {
            done.run();
        } else {
            again.accept(receipt.pause());
        }
    }

    static Optional<String> id(Map<String, String> headers) {
        return first(headers, ID_HEADERS);
    }

    static Optional<String> key(Map<String, String> headers) {
        return first(headers, KEY_HEADERS);
    }

    private static Optional<String> first(Map<String, String> headers, List<String> names) {
        return names.stream().filter(headers::containsKey).findFirst().map(headers::get);
    }
}
