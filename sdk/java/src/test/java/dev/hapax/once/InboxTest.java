package dev.hapax.once;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.hapax.once.testing.Database;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What a consumer does beyond the scenarios that all SDKs share. */
class InboxTest {
    private static Database database;
    private static Inbox mailer;

    @BeforeAll
    static void create() {
        database = Database.create();
        mailer = Hapax.on(database.pool()).inbox("mailer").attempts(3).patience(Duration.ZERO);
    }

    @AfterAll
    static void drop() {
        database.close();
    }

    private static String attempts(String id) {
        return database.text("SELECT coalesce(max(attempts), 0) FROM hapax.inbox_attempts WHERE message_id = '" + id + "'");
    }

    private static void raise(Connection connection, String state) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '" + state + "'; END $$");
        }
    }

    @Test
    void aConflictAndAnOutageCountNoAttempt() {
        Message message = Message.of("conflict", "hello");
        for (String state : new String[] {"40001", "40P01", "57P01", "08006"}) {
            Receipt receipt = mailer.receive(message, connection -> raise(connection, state));
            assertFalse(receipt.isDone(), state);
            assertTrue(receipt.acted() && receipt.pause().toMillis() > 0, state);
        }
        assertEquals("0", attempts("conflict"));
        assertTrue(mailer.receive(message, connection -> Database.write(connection, "conflict")).isDone());
        assertEquals(1, database.effects("conflict"));
    }

    @Test
    void whatFailsWhenItIsCommittedIsAnAttempt() {
        database.run("CREATE TABLE once_each (name text UNIQUE DEFERRABLE INITIALLY DEFERRED)");
        database.run("INSERT INTO once_each VALUES ('taken')");
        Receipt receipt = mailer.receive(Message.of("deferred", "hello"), connection -> {
            try (Statement statement = connection.createStatement()) {
                statement.execute("INSERT INTO once_each VALUES ('taken')");
            }
        });
        assertFalse(receipt.isDone());
        assertEquals("1", attempts("deferred"));
    }

    @Test
    void whatAnotherDeliveryIsAtComesAgain() throws SQLException {
        Message message = Message.of("busy", "hello");
        mailer.receive(Message.of("known", ""), connection -> {});
        try (Connection other = database.pool().getConnection()) {
            other.setAutoCommit(false);
            assertTrue(mailer.firstDelivery(other, message));
            Receipt receipt = mailer.receive(message, connection -> {});
            assertFalse(receipt.isDone() || receipt.acted());
            other.rollback();
        }
        assertTrue(mailer.receive(message, connection -> {}).acted());
    }

    @Test
    void aDeadLetterHasWhatPeopleNeed() {
        Message message = Message.of("letter", "hello").key("order-1").source("orders").headers(Map.of("a", "b"));
        for (int attempt = 1; attempt <= 3; attempt++) {
            Receipt receipt = mailer.receive(message, connection -> {
                throw new IllegalStateException("no \0 address");
            });
            assertEquals(attempt == 3, receipt.isDone());
        }
        String letter = database.text("SELECT concat_ws('|', key, source, detail) FROM hapax.inbox_dead_readable WHERE message_id = 'letter'");
        assertEquals("order-1|orders|it failed 3 times: no  address", letter);
    }

    @Test
    void byHandItIsTheSame() throws SQLException {
        Message message = Message.of("by-hand", "hello");
        try (Connection connection = database.pool().getConnection()) {
            connection.setAutoCommit(false);
            assertTrue(mailer.firstDelivery(connection, message));
            connection.rollback();
            assertFalse(mailer.failDelivery(connection, message, "no address", false));
            connection.commit();
            assertTrue(mailer.failDelivery(connection, message, "no address", true));
            connection.commit();
            assertFalse(mailer.firstDelivery(connection, message));
            connection.rollback();
        }
    }

    @Test
    void aMessageWithoutAUsableIdIsRefused() {
        for (String id : new String[] {null, "", " ", "m".repeat(256)}) {
            assertThrows(HapaxException.Invalid.class, () -> Message.of(id, "hello"));
        }
    }

    @Test
    void whatIsWrongWithTheConsumerIsThrown() {
        database.run("CREATE ROLE java_inbox_guest LOGIN");
        try (var pool = Database.pool(database.url().replace("postgres@", "java_inbox_guest@"))) {
            Inbox guest = Hapax.on(pool).inbox("mailer");
            assertThrows(HapaxException.NotPermitted.class, () -> guest.receive(Message.of("m", ""), connection -> {}));
        } finally {
            database.run("DROP ROLE java_inbox_guest");
        }
    }
}
