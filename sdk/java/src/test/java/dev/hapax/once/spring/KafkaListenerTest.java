package dev.hapax.once.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.hapax.once.FailedForGood;
import dev.hapax.once.Hapax;
import dev.hapax.once.testing.Database;
import dev.hapax.once.testing.Eventually;
import dev.hapax.once.testing.Services;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.orm.jpa.HibernateJpaAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.support.Acknowledgment;

/** A listener of a real Kafka. */
class KafkaListenerTest {
    private static final String TOPIC = "java-" + UUID.randomUUID();
    private static final String GROUP = "mailer-" + UUID.randomUUID();

    @SpringBootConfiguration
    @EnableAutoConfiguration(exclude = HibernateJpaAutoConfiguration.class)
    @Import(Mailer.class)
    static class Application {}

    static class Mailer {
        private final IdempotentKafkaListener mailer;
        private final JdbcTemplate jdbc;

        Mailer(Hapax hapax, JdbcTemplate jdbc) {
            this.mailer = new IdempotentKafkaListener(hapax.inbox("mailer").attempts(2));
            this.jdbc = jdbc;
        }

        @KafkaListener(topics = "${topic}", groupId = "${group}")
        void mail(ConsumerRecord<String, String> record, Acknowledgment acknowledgment) {
            mailer.receive(record, acknowledgment, connection -> {
                jdbc.update("INSERT INTO effects (name) VALUES (?)", record.value());
                if (record.value().equals("poison")) {
                    throw new IllegalStateException("no such address");
                } else if (record.value().equals("refused")) {
                    throw new FailedForGood("no address");
                }
            });
        }
    }

    @Test
    void eachRecordIsActedOnOnce() throws Exception {
        String servers = Services.url("kafka").replaceFirst("kafka://", "");
        try (Database database = Database.create();
                AdminClient admin = AdminClient.create(Map.<String, Object>of("bootstrap.servers", servers))) {
            admin.createTopics(List.of(new NewTopic(TOPIC, 1, (short) 1))).all().get();
            try (ConfigurableApplicationContext application = application(database, servers)) {
                send(application, "m-1", "hello");
                send(application, "m-1", "hello");
                send(application, "m-1", "other");
                send(application, "m-2", "poison");
                send(application, "m-3", "refused");
                send(application, null, "nameless");
                send(application, "m-4", "last");
                Eventually.equal(7L, () -> committed(admin));
            } finally {
                admin.deleteTopics(List.of(TOPIC)).all().get();
            }
            for (String name : new String[] {"hello", "nameless", "last"}) {
                assertEquals(1, database.effects(name), name);
            }
            for (String name : new String[] {"other", "poison", "refused"}) {
                assertEquals(0, database.effects(name), name);
            }
            assertEquals("m-1 id-conflict, m-2 poison", database.text(
                    "SELECT string_agg(message_id || ' ' || reason, ', ' ORDER BY message_id) FROM hapax.inbox_dead_readable"));
            assertEquals(TOPIC + "/0/5", database.text(
                    "SELECT message_id FROM hapax.inbox_readable WHERE message_id LIKE '%/0/%'"));
        }
    }

    private static ConfigurableApplicationContext application(Database database, String servers) {
        return new SpringApplicationBuilder(Application.class).web(WebApplicationType.NONE).properties(
                "topic=" + TOPIC, "group=" + GROUP, "spring.main.banner-mode=off", "logging.level.root=off",
                "spring.datasource.url=" + database.jdbcUrl(), "spring.datasource.username=postgres",
                "spring.kafka.bootstrap-servers=" + servers, "spring.kafka.consumer.auto-offset-reset=earliest",
                "spring.kafka.listener.ack-mode=manual_immediate").run();
    }

    @SuppressWarnings("unchecked")
    private static void send(ConfigurableApplicationContext application, String id, String value) throws Exception {
        ProducerRecord<String, String> record = new ProducerRecord<>(TOPIC, 0, "order", value);
        if (id != null) {
            record.headers().add("ce_id", id.getBytes());
        }
        application.getBean(KafkaTemplate.class).send(record).get();
    }

    private static Long committed(AdminClient admin) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets =
                admin.listConsumerGroupOffsets(GROUP).partitionsToOffsetAndMetadata().get();
        OffsetAndMetadata offset = offsets.get(new TopicPartition(TOPIC, 0));
        return offset == null ? 0L : offset.offset();
    }
}
