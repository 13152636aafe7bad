package dev.hapax.once.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.rabbitmq.client.Channel;
import dev.hapax.once.FailedForGood;
import dev.hapax.once.Hapax;
import dev.hapax.once.testing.Database;
import dev.hapax.once.testing.Eventually;
import dev.hapax.once.testing.Services;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.MessageBuilder;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.orm.jpa.HibernateJpaAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.JdbcTemplate;

/** A listener of a real RabbitMQ. */
class RabbitListenerTest {
    private static final String QUEUE = "java-" + UUID.randomUUID();

    @SpringBootConfiguration
    @EnableAutoConfiguration(exclude = HibernateJpaAutoConfiguration.class)
    @Import(Mailer.class)
    static class Application {}

    static class Mailer {
        private final IdempotentRabbitListener mailer;
        private final JdbcTemplate jdbc;

        Mailer(Hapax hapax, JdbcTemplate jdbc) {
            this.mailer = new IdempotentRabbitListener(hapax.inbox("mailer").attempts(2));
            this.jdbc = jdbc;
        }

        @RabbitListener(queues = "${queue}", ackMode = "MANUAL")
        void mail(Message message, Channel channel) {
            String text = new String(message.getBody(), StandardCharsets.UTF_8);
            mailer.receive(message, channel, connection -> {
                jdbc.update("INSERT INTO effects (name) VALUES (?)", text);
                if (text.equals("poison")) {
                    throw new IllegalStateException("no such address");
                } else if (text.equals("refused")) {
                    throw new FailedForGood("no address");
                }
            });
        }
    }

    @Test
    void eachMessageIsActedOnOnce() throws Exception {
        CachingConnectionFactory factory = new CachingConnectionFactory(URI.create(Services.url("rabbitmq")));
        RabbitAdmin admin = new RabbitAdmin(factory);
        admin.declareQueue(new Queue(QUEUE, true));
        try (Database database = Database.create()) {
            try (ConfigurableApplicationContext application = application(database)) {
                RabbitTemplate template = application.getBean(RabbitTemplate.class);
                send(template, "m-1", "hello");
                send(template, "m-1", "hello");
                send(template, "m-1", "other");
                send(template, "m-2", "poison");
                send(template, "m-3", "refused");
                send(template, null, "nameless");
                send(template, "m-4", "last");
                Eventually.equal("m-1 id-conflict, m-2 poison", () -> database.text(
                        "SELECT string_agg(message_id || ' ' || reason, ', ' ORDER BY message_id) FROM hapax.inbox_dead_readable"));
                Eventually.equal(1, () -> database.effects("last"));
            }
            for (String name : new String[] {"hello", "last"}) {
                assertEquals(1, database.effects(name), name);
            }
            for (String name : new String[] {"other", "poison", "refused", "nameless"}) {
                assertEquals(0, database.effects(name), name);
            }
            // What has no id is still there, and nothing else.
            Eventually.equal(1L, () -> admin.getQueueInfo(QUEUE).getMessageCount() + 0L);
            Message left = new RabbitTemplate(factory).receive(QUEUE);
            assertEquals("nameless", new String(left.getBody(), StandardCharsets.UTF_8));
        } finally {
            admin.deleteQueue(QUEUE);
            factory.destroy();
        }
    }

    private static ConfigurableApplicationContext application(Database database) {
        return new SpringApplicationBuilder(Application.class).web(WebApplicationType.NONE).properties(
                "queue=" + QUEUE, "spring.main.banner-mode=off", "logging.level.root=off",
                "spring.datasource.url=" + database.jdbcUrl(), "spring.datasource.username=postgres",
                // Spring Boot does not decode what stands for the virtual host `/`, and takes it where there is none.
                "spring.rabbitmq.addresses=" + Services.url("rabbitmq").replaceFirst("%2f$", "")).run();
    }

    private static void send(RabbitTemplate template, String id, String text) {
        MessageBuilder message = MessageBuilder.withBody(text.getBytes(StandardCharsets.UTF_8));
        template.send(QUEUE, (id == null ? message : message.setMessageId(id)).build());
    }
}
