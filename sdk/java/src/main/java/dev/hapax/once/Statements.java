package dev.hapax.once;

import dev.hapax.once.internal.Json;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** The SQL functions, and nothing else. */
final class Statements {
    /** The version of the schema that this code was written for. */
    private static final int VERSION = 10;

    private static final String BEGIN =
            "SELECT decision, operation, fence, status, headers, body, retry_after, differs, expires_at"
                    + " FROM hapax.begin(?, ?, ?, ?, ?, ?, ?)";
    private static final String BEGIN_WITH_SPANS = BEGIN.replace("?)", "?, ?::interval, ?::interval, ?::interval)");
    private static final String FINISH = "SELECT hapax.finish(?, ?, ?, ?::jsonb, ?)";
    private static final String FAIL = "SELECT hapax.fail(?, ?, ?, ?::jsonb, ?)";
    private static final String EMIT = "SELECT hapax.emit(?, ?, ?, ?::jsonb, ?, ?)";
    private static final String FIRST_DELIVERY =
            "SELECT hapax.first_delivery(?, ?, ?, ?, ?::interval, ?::interval)";
    private static final String FAIL_DELIVERY = "SELECT attempts, is_over FROM hapax.fail_delivery("
            + "?, ?, ?, ?, ?, ?, ?, ?, ?::jsonb, ?, ?::interval, ?::interval)";
    private static final String SCHEMA = "SELECT version, works_with FROM hapax.schema_version()";

    private Statements() {}

    /** What {@code hapax.begin} decided; what else is there depends on the decision. */
    record Begun(
            String decision,
            UUID operation,
            long fence,
            Answer answer,
            int retryAfter,
            List<String> differs,
            Instant expiresAt) {}

    /** What came of a delivery that failed. */
    record Failed(int attempts, boolean isOver) {}

    static Begun begin(Connection connection, Operation operation, Options options) throws SQLException {
        checkTransaction(connection);
        boolean isUsual = options.hasUsualSpans();
        try (PreparedStatement statement = connection.prepareStatement(isUsual ? BEGIN : BEGIN_WITH_SPANS)) {
            set(statement, 1, operation.tenant(), operation.scope(), operation.key(), operation.request(), operation.method(),
                    operation.path(), operation.query());
            if (!isUsual) {
                set(statement, 8, options.retention(), options.tombstone(), options.patience());
            }
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return begun(row);
            }
        }
    }

    private static Begun begun(ResultSet row) throws SQLException {
        String decision = row.getString("decision");
        OffsetDateTime expiresAt = row.getObject("expires_at", OffsetDateTime.class);
        return new Begun(
                decision,
                row.getObject("operation", UUID.class),
                row.getLong("fence"),
                decision.equals("replay") ? answer(row) : null,
                row.getInt("retry_after"),
                decision.equals("mismatch") ? List.of((String[]) row.getArray("differs").getArray()) : List.of(),
                expiresAt == null ? null : expiresAt.toInstant());
    }

    private static Answer answer(ResultSet row) throws SQLException {
        byte[] body = row.getBytes("body");
        if (body == null) {
            throw new HapaxException.NotRetained(row.getInt("status"));
        }
        return Answer.of(row.getInt("status")).headers(headers(row.getString("headers"))).body(body);
    }

    /** Headers as they are kept: a text, or a list of texts, for each name. */
    private static Map<String, List<String>> headers(String json) {
        Map<String, List<String>> headers = new LinkedHashMap<>();
        try {
            ((Map<?, ?>) Json.read(json)).forEach((name, value) -> headers.put((String) name, value instanceof List<?> values
                    ? values.stream().map(String.class::cast).toList()
                    : List.of((String) value)));
            return headers;
        } catch (Json.NotOneValue | ClassCastException error) {
            throw new HapaxException.Unexpected("The database sent other headers than it keeps: " + json, error);
        }
    }

    /** As {@link #headers} reads them. */
    private static String json(Map<String, List<String>> headers) {
        Map<String, Object> written = new LinkedHashMap<>();
        headers.forEach((name, values) -> written.put(name, values.size() == 1 ? values.get(0) : values));
        return Json.text(written);
    }

    static void finish(Connection connection, Begun begun, Answer answer) throws SQLException {
        end(connection, FINISH, begun, answer);
    }

    static void fail(Connection connection, Begun begun, Answer answer) throws SQLException {
        end(connection, FAIL, begun, answer);
    }

    private static void end(Connection connection, String text, Begun begun, Answer answer) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            set(statement, 1, begun.operation(), begun.fence(), answer.status(), json(answer.headers()), answer.body());
            statement.execute();
        }
    }

    static void emit(Connection connection, Event event) throws SQLException {
        checkTransaction(connection);
        try (PreparedStatement statement = connection.prepareStatement(EMIT)) {
            set(statement, 1, event.topic(), event.key(), event.payload(), Json.text(event.headers()), event.contentType(),
                    event.id());
            statement.execute();
        }
    }

    static boolean firstDelivery(Connection connection, Inbox inbox, Message message) throws SQLException {
        checkTransaction(connection);
        try (PreparedStatement statement = connection.prepareStatement(FIRST_DELIVERY)) {
            set(statement, 1, inbox.consumer(), message.id(), message.content(), inbox.tenant(), inbox.retention(),
                    inbox.patience());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        }
    }

    static Failed failDelivery(Connection connection, Inbox inbox, Message message, String reason, boolean forGood)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(FAIL_DELIVERY)) {
            set(statement, 1, inbox.consumer(), message.id(), message.content(), reason, inbox.attempts(), forGood,
                    message.key().orElse(null), message.source(), Json.text(message.headers()), inbox.tenant(),
                    inbox.retention(), inbox.patience());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return new Failed(row.getInt("attempts"), row.getBoolean("is_over"));
            }
        }
    }

    /**
     * Before anything is claimed that nobody would end. The driver knows: a statement cannot tell, because a transaction of
     * its own begins when it is parsed, before {@code statement_timestamp()}.
     */
    private static void checkTransaction(Connection connection) throws SQLException {
        if (connection.getAutoCommit()) {
            throw new HapaxException.NotInATransaction(null);
        }
    }

    static void checkSchema(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(SCHEMA);
                ResultSet row = statement.executeQuery()) {
            row.next();
            int version = row.getInt("version");
            int worksWith = row.getInt("works_with");
            if (version < VERSION) {
                throw new HapaxException.SchemaVersion("The schema has version " + version + ", and this package needs "
                        + VERSION + ": run `hapax migrate` of a newer version.");
            }
            if (worksWith > VERSION) {
                throw new HapaxException.SchemaVersion("The schema works with version " + worksWith
                        + " and later, and this package was written for " + VERSION + ": use a newer package.");
            }
        }
    }

    /** Bytes are bytes to the driver; spans are spelled as ISO 8601 has it, which PostgreSQL reads. */
    private static void set(PreparedStatement statement, int first, Object... values) throws SQLException {
        for (int at = 0; at < values.length; at++) {
            Object value = values[at];
            if (value instanceof byte[] bytes) {
                statement.setBytes(first + at, bytes);
            } else if (value == null || value instanceof String) {
                statement.setString(first + at, (String) value);
            } else {
                statement.setObject(first + at, value instanceof Duration span ? span.toString() : value);
            }
        }
    }
}
