package dev.hapax.once.spring;

import com.rabbitmq.client.Channel;
import dev.hapax.once.Handler;
import dev.hapax.once.Inbox;
import dev.hapax.once.Message;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.springframework.amqp.core.MessageProperties;

/**
 * Acts on each message once, in a transaction with the handler's writes.
 *
 * <pre>{@code
 * @RabbitListener(queues = "orders", ackMode = "MANUAL")
 * void mail(Message message, Channel channel) {
 *     mailer.receive(message, channel, connection -> jdbc.update("INSERT INTO mails …"));
 * }
 * }</pre>
 *
 * <p>RabbitMQ puts a message back at once or never: one that has to come again later is held here, unacknowledged, and put
 * back when its time has come. It counts among the prefetched ones meanwhile.
 */
public final class IdempotentRabbitListener {
    private final Deliveries deliveries;

    /** For example {@code hapax.inbox("mailer")}. */
    public IdempotentRabbitListener(Inbox inbox) {
        this.deliveries = new Deliveries(inbox);
    }

    /**
     * Acts on the message if this is its first delivery, and tells the broker. It is known by the id of its CloudEvent
     * ({@code ce-id}) or by its property {@code message_id}; one that has neither comes again until somebody names it.
     */
    public void receive(org.springframework.amqp.core.Message message, Channel channel, Handler handler) {
        String named = message.getMessageProperties().getMessageId();
        receive(message, Deliveries.id(headers(message.getMessageProperties())).orElse(named), channel, handler);
    }

    /** The same under this id. */
    public void receive(org.springframework.amqp.core.Message message, String id, Channel channel, Handler handler) {
        long tag = message.getMessageProperties().getDeliveryTag();
        deliveries.receive(
                () -> read(message, id),
                handler,
                () -> acknowledge(channel, tag),
                pause -> putBack(channel, tag, pause));
    }

    private static Message read(org.springframework.amqp.core.Message message, String id) {
        MessageProperties properties = message.getMessageProperties();
        Map<String, String> headers = headers(properties);
        return Message.of(id, message.getBody())
                .key(Deliveries.key(headers).orElse(null))
                .source(properties.getConsumerQueue() == null ? "" : properties.getConsumerQueue())
                .headers(headers);
    }

    private static Map<String, String> headers(MessageProperties properties) {
        Map<String, String> headers = new LinkedHashMap<>();
        properties.getHeaders().forEach((name, value) -> headers.put(name, String.valueOf(value)));
        return headers;
    }

    private static void acknowledge(Channel channel, long tag) {
        try {
            channel.basicAck(tag, false);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static void putBack(Channel channel, long tag, Duration pause) {
        CompletableFuture.delayedExecutor(pause.toMillis(), TimeUnit.MILLISECONDS).execute(() -> {
            try {
                channel.basicNack(tag, false, true);
            } catch (IOException | RuntimeException lost) {
                // Whoever closes a channel puts back what it held.
                System.getLogger(IdempotentRabbitListener.class.getName()).log(Level.DEBUG, "the channel is closed", lost);
            }
        });
    }
}
