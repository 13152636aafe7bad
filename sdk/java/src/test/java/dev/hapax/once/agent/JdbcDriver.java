package dev.hapax.once.agent;

import com.fasterxml.jackson.databind.JsonNode;
import dev.hapax.once.Answer;
import dev.hapax.once.Hapax;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;

/** Plain JDBC. */
record JdbcDriver(Hapax hapax, DataSource source) implements Driver {
    @Override
    public Driver another() {
        return new JdbcDriver(Hapax.on(source), source);
    }

    @Override
    public Answer once(JsonNode command) throws Exception {
        return hapax.with(Command.options(command))
                .once(Command.operation(command), connection -> run(command, connection));
    }

    @Override
    public Answer within(JsonNode command, String how) throws Exception {
        try (Connection connection = source.getConnection()) {
            connection.setAutoCommit(how.equals("autocommit"));
            if (how.equals("aborted")) {
                fail(connection);
            }
            Answer answer = inside(command, connection, how.equals("twice"));
            if (how.equals("transaction")) {
                connection.commit();
            } else {
                connection.rollback();
            }
            return answer;
        }
    }

    private Answer inside(JsonNode command, Connection connection, boolean isTwice) throws Exception {
        return hapax.with(Command.options(command)).within(connection, Command.operation(command), same -> isTwice
                ? inside(command, same, false)
                : run(command, same));
    }

    private static void fail(Connection connection) {
        try (Statement statement = connection.createStatement()) {
            statement.execute("SELECT 1 / 0");
        } catch (SQLException expected) {
            // The transaction is aborted from here on.
        }
    }

    private Answer run(JsonNode command, Connection connection) throws Exception {
        Work.Writer writer = name -> {
            write(connection, name);
            nest(command);
        };
        return new Work(command.path("work")).run(writer, event -> hapax.emit(connection, event));
    }

    @Override
    public void handle(Work work, Connection connection) throws Exception {
        work.handle(name -> write(connection, name), event -> hapax.emit(connection, event));
    }

    private static void write(Connection connection, String name) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO effects (name) VALUES (?)")) {
            insert.setString(1, name);
            insert.execute();
        }
    }
}
