package dev.hapax.once;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariDataSource;
import dev.hapax.once.spring.SpringTransactions;
import dev.hapax.once.testing.Database;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.jdbc.support.JdbcTransactionManager;

/** What `once` and `within` do beyond the scenarios that all SDKs share. */
class OnceTest {
    private static final AtomicInteger KEYS = new AtomicInteger();
    private static Database database;

    /** Where transactions come from. */
    enum Way {
        JDBC,
        SPRING;

        Hapax hapax() {
            HikariDataSource pool = database.pool();
            return switch (this) {
                case JDBC -> Hapax.on(pool);
                case SPRING -> Hapax.on(new SpringTransactions(new JdbcTransactionManager(pool), pool));
            };
        }
    }

    @BeforeAll
    static void create() {
        database = Database.create();
    }

    @AfterAll
    static void drop() {
        database.close();
    }

    private static Operation operation() {
        return Operation.of("shop", "once", "key-" + KEYS.incrementAndGet());
    }

    private static void execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    private static void fail(Connection connection, String state) throws SQLException {
        execute(connection, "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '" + state + "'; END $$");
    }

    @ParameterizedTest
    @EnumSource
    void whatTheWorkThrowsGoesOnAsItIs(Way way) {
        Operation operation = operation();
        IOException paper = new IOException("out of paper");
        IOException thrown = assertThrows(IOException.class, () -> way.hapax().once(operation, connection -> {
            Database.write(connection, operation.key());
            throw paper;
        }));
        assertSame(paper, thrown);
        assertEquals(0, database.effects(operation.key()) + database.records(operation.key()));
    }

    @ParameterizedTest
    @EnumSource
    void aConflictIsTriedSixTimes(Way way) {
        Operation operation = operation();
        AtomicInteger tries = new AtomicInteger();
        assertThrows(HapaxException.Conflict.class, () -> way.hapax().once(operation, connection -> {
            tries.incrementAndGet();
            fail(connection, "40001");
            return Answer.of(201);
        }));
        assertEquals(6, tries.get());
        assertEquals(0, database.records(operation.key()));
    }

    @ParameterizedTest
    @EnumSource
    void aConflictThatPassesIsNotHeardOf(Way way) throws SQLException {
        Operation operation = operation();
        AtomicInteger tries = new AtomicInteger();
        Answer answer = way.hapax().once(operation, connection -> {
            Database.write(connection, operation.key());
            if (tries.incrementAndGet() < 3) {
                fail(connection, "40P01");
            }
            return Answer.text(201, "paid");
        });
        assertEquals("paid", answer.text());
        assertEquals(1, database.effects(operation.key()));
    }

    @ParameterizedTest
    @EnumSource
    void aConnectionThatIsLostBeforeTheCommitLeavesNothing(Way way) throws SQLException {
        Operation operation = operation();
        Hapax hapax = way.hapax();
        assertThrows(HapaxException.Unavailable.class, () -> hapax.once(operation, connection -> {
            Database.write(connection, operation.key());
            execute(connection, "SELECT pg_terminate_backend(pg_backend_pid())");
            return Answer.of(201);
        }));
        assertEquals(0, database.effects(operation.key()));
        assertFalse(hapax.once(operation, connection -> Answer.of(201)).replayed());
    }

    @ParameterizedTest
    @EnumSource
    void anAnswerThatIsTooLargeIsRefused(Way way) {
        Operation operation = operation();
        byte[] large = new byte[(16 << 20) + 1];
        assertThrows(HapaxException.Invalid.class, () -> way.hapax().once(operation, connection -> Answer.of(200).body(large)));
        assertEquals(0, database.records(operation.key()));
    }

    @Test
    void aRefusalIsAFailure() {
        assertThrows(HapaxException.Invalid.class, () -> new Refused(Answer.of(201)));
    }

    @Test
    void bytesAreReplayedAsTheyAre() {
        Operation operation = operation().request(new byte[] {0, (byte) 0xff, '\\', 'x'});
        byte[] bytes = {0, 1, (byte) 0xfe, '\\', 'x', '4', '1'};
        Hapax hapax = Way.JDBC.hapax();
        Answer first = Answer.of(200).header("X-A", "b").header("x-a", "ü").body(bytes);
        hapax.once(operation, connection -> first);
        Answer replayed = hapax.once(operation, connection -> Answer.of(500));
        assertEquals(List.of("b", "ü"), replayed.headers().get("x-a"));
        assertEquals(HexFormat.of().formatHex(bytes), HexFormat.of().formatHex(replayed.body()));
        assertTrue(replayed.replayed() && replayed.expiresAt().isPresent());
    }

    @Test
    void withinLeavesNoClaimThatNobodyEnds() throws SQLException {
        Hapax hapax = Way.JDBC.hapax();
        Operation passing = operation();
        Operation raising = operation();
        Operation refusing = operation();
        try (Connection connection = database.pool().getConnection()) {
            connection.setAutoCommit(false);
            Database.write(connection, "caller");
            hapax.within(connection, passing, same -> {
                Database.write(same, passing.key());
                return Answer.of(503);
            });
            assertThrows(IllegalStateException.class, () -> hapax.within(connection, raising, same -> {
                Database.write(same, raising.key());
                throw new IllegalStateException();
            }));
            hapax.within(connection, refusing, same -> {
                Database.write(same, refusing.key());
                throw new Refused(Answer.of(402));
            });
            connection.commit();
        }
        for (Operation operation : new Operation[] {passing, raising, refusing}) {
            assertEquals(0, database.effects(operation.key()));
            assertEquals(operation == refusing ? 1 : 0, database.records(operation.key()));
        }
        assertEquals(1, database.effects("caller"));
    }

    @Test
    void anAnswerThatWasReplayedElsewhereIsAnAnswerLikeAnyOther() throws SQLException {
        Hapax hapax = Way.JDBC.hapax();
        Operation inner = operation();
        Operation outer = operation();
        assertEquals(503, hapax.once(inner, connection -> {
            throw new Refused(Answer.of(503));
        }).status());
        try (Connection connection = database.pool().getConnection()) {
            connection.setAutoCommit(false);
            Answer answer = hapax.within(connection, outer, same -> hapax.within(same, inner, never -> Answer.of(200)));
            assertFalse(answer.replayed());
            connection.commit();
        }
        assertEquals(0, database.records(outer.key()));
    }

    @Test
    void outsideOfATransactionNothingIsEmittedOrRemembered() throws SQLException {
        Hapax hapax = Way.JDBC.hapax();
        try (Connection connection = database.pool().getConnection()) {
            Event event = Event.of("paid", "order", "{}");
            assertThrows(HapaxException.NotInATransaction.class, () -> hapax.emit(connection, event));
            assertThrows(HapaxException.NotInATransaction.class, () -> hapax.emit(event));
            Inbox inbox = hapax.inbox("mailer");
            assertThrows(HapaxException.NotInATransaction.class, () -> inbox.firstDelivery(connection, Message.of("m", "")));
        }
        assertEquals("0", database.text("SELECT count(*) FROM hapax.outbox"));
        assertEquals("0", database.text("SELECT count(*) FROM hapax.inbox"));
    }

    @Test
    void aConnectionIsGivenBackAsItWas() throws SQLException {
        Way.JDBC.hapax().with(Options.usual().isolation(Isolation.SERIALIZABLE)).once(operation(), connection -> {
            assertFalse(connection.getAutoCommit());
            return Answer.of(200);
        });
        try (Connection connection = database.pool().getConnection()) {
            assertTrue(connection.getAutoCommit());
            assertEquals(Connection.TRANSACTION_READ_COMMITTED, connection.getTransactionIsolation());
        }
    }

    @Test
    void aNestedErrorKeepsItsCause() {
        Operation operation = operation();
        HapaxException.Conflict conflict = assertThrows(HapaxException.Conflict.class, () ->
                Way.SPRING.hapax().once(operation, connection -> {
                    fail(connection, "40001");
                    return Answer.of(200);
                }));
        assertInstanceOf(SQLException.class, conflict.getCause());
        assertEquals("conflict", conflict.kind());
    }

    @Test
    void whatIsNotThereIsInvalid() {
        Operation operation = operation();
        assertThrows(HapaxException.Invalid.class, () -> Operation.of("shop", "once", null));
        assertThrows(HapaxException.Invalid.class, () -> Operation.of(null, "once", "k"));
        assertThrows(HapaxException.Invalid.class, () -> operation.at("POST", null, ""));
        assertThrows(HapaxException.Invalid.class, () -> operation.request((String) null));
        assertThrows(HapaxException.Invalid.class, () -> operation.request((byte[]) null));
    }
}
