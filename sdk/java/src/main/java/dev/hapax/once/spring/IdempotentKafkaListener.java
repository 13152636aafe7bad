package dev.hapax.once.spring;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.hapax.once.Handler;
import dev.hapax.once.Inbox;
import dev.hapax.once.Message;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.springframework.kafka.support.Acknowledgment;

/**
 * Acts on each record once, in a transaction with the handler's writes.
 *
 * <pre>{@code
 * @KafkaListener(topics = "orders", groupId = "mailer")
 * void mail(ConsumerRecord<String, String> record, Acknowledgment acknowledgment) {
 *     mailer.receive(record, acknowledgment, connection -> jdbc.update("INSERT INTO mails …"));
 * }
 * }</pre>
 *
 * <p>The container's acknowledgment mode must be {@code manual_immediate} or {@code manual}, and values bytes or texts. A
 * record that has to come again holds up its partition, so the order of a key is kept.
 */
public final class IdempotentKafkaListener {
    private final Deliveries deliveries;

    /** For example {@code hapax.inbox("mailer")}. */
    public IdempotentKafkaListener(Inbox inbox) {
        this.deliveries = new Deliveries(inbox);
    }

    /**
     * Acts on the record if this is its first delivery, and tells the broker. It is known by the id of its CloudEvent
     * ({@code ce_id}), or else by where it stands, which cannot tell that it was sent twice.
     */
    public void receive(ConsumerRecord<?, ?> record, Acknowledgment acknowledgment, Handler handler) {
        String place = record.topic() + "/" + record.partition() + "/" + record.offset();
        receive(record, Deliveries.id(headers(record)).orElse(place), acknowledgment, handler);
    }

    /** The same under this id. */
    public void receive(ConsumerRecord<?, ?> record, String id, Acknowledgment acknowledgment, Handler handler) {
        deliveries.receive(() -> message(record, id), handler, acknowledgment::acknowledge, acknowledgment::nack);
    }

    private static Message message(ConsumerRecord<?, ?> record, String id) {
        Map<String, String> headers = headers(record);
        String key = record.key() == null ? null : new String(bytes(record.key()), UTF_8);
        return Message.of(id, bytes(record.value()))
                .key(key == null ? Deliveries.key(headers).orElse(null) : key)
                .source(record.topic())
                .headers(headers);
    }

    private static byte[] bytes(Object value) {
        if (value == null) {
            return new byte[0];
        } else if (value instanceof byte[] bytes) {
            return bytes;
        } else if (value instanceof String text) {
            return text.getBytes(UTF_8);
        }
        throw new IllegalArgumentException("What is compared are bytes or texts: use their deserializer, and not one for "
                + value.getClass().getName() + ".");
    }

    private static Map<String, String> headers(ConsumerRecord<?, ?> record) {
        Map<String, String> headers = new LinkedHashMap<>();
        record.headers().forEach(header -> headers.put(header.key(), new String(header.value(), UTF_8)));
        return headers;
    }
}
