package dev.hapax.once.testing;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.atomic.AtomicInteger;

/** A database of the test server with the schema and a table of effects. It is dropped at the end. */
public final class Database implements AutoCloseable {
    private static final int CONNECTIONS_MAX = 10;
    private static final long PATIENCE_MS = 5_000;
    private static final AtomicInteger CREATED = new AtomicInteger();

    private final String server;
    private final String name;
    private final HikariDataSource pool;

    private Database(String server, String name) {
        this.server = server;
        this.name = name;
        this.pool = pool(url());
    }

    public static Database create() {
        String server = Services.url("postgres");
        String name = "hapax_java_" + ProcessHandle.current().pid() + "_" + CREATED.incrementAndGet();
        run(server, "CREATE DATABASE " + name);
        Database database = new Database(server, name);
        database.migrate();
        database.run("CREATE TABLE effects (name text NOT NULL)");
        return database;
    }

    /** A pool for a URL as PostgreSQL writes it; the server need not be there. */
    public static HikariDataSource pool(String url) {
        URI uri = URI.create(url);
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(jdbc(url));
        String[] user = (uri.getUserInfo() == null ? "postgres" : uri.getUserInfo()).split(":", 2);
        config.setUsername(user[0]);
        config.setPassword(user.length == 2 ? user[1] : null);
        config.setMaximumPoolSize(CONNECTIONS_MAX);
        config.setMinimumIdle(0);
        config.setConnectionTimeout(PATIENCE_MS);
        config.setInitializationFailTimeout(-1);
        return new HikariDataSource(config);
    }

    private static String jdbc(String url) {
        URI uri = URI.create(url);
        String query = uri.getQuery() == null ? "" : "?" + uri.getQuery();
        return "jdbc:postgresql://" + uri.getHost() + ":" + uri.getPort() + uri.getPath() + query;
    }

    private void migrate() {
        Path built = Path.of("../../target/debug/hapax");
        String program = Files.isExecutable(built) ? built.toString() : "hapax";
        try {
            Process migrating = new ProcessBuilder(program, "migrate", "--store", url()).redirectErrorStream(true).start();
            String said = new String(migrating.getInputStream().readAllBytes());
            if (migrating.waitFor() != 0) {
                throw new IllegalStateException("hapax migrate: " + said);
            }
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException("hapax is needed to install the schema", error);
        }
    }

    public String url() {
        return server.substring(0, server.lastIndexOf('/') + 1) + name;
    }

    /** The same as JDBC writes it. */
    public String jdbcUrl() {
        return jdbc(url());
    }

    public HikariDataSource pool() {
        return pool;
    }

    public void run(String sql) {
        run(url(), sql);
    }

    private static void run(String url, String sql) {
        try (Connection connection = connect(url);
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        } catch (SQLException error) {
            throw new IllegalStateException(sql, error);
        }
    }

    public String text(String sql) {
        try (Connection connection = connect(url());
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            row.next();
            return row.getString(1);
        } catch (SQLException error) {
            throw new IllegalStateException(sql, error);
        }
    }

    private static Connection connect(String url) throws SQLException {
        String user = URI.create(url).getUserInfo();
        return DriverManager.getConnection(jdbc(url), user == null ? "postgres" : user, null);
    }

    public int effects(String name) {
        return Integer.parseInt(text("SELECT count(*) FROM effects WHERE name = '" + name + "'"));
    }

    /** How many operations there are under this key. */
    public int records(String key) {
        return Integer.parseInt(text("SELECT count(*) FROM hapax.operations WHERE key = '" + key + "'"));
    }

    /** Writes an effect on this connection. */
    public static void write(Connection connection, String name) throws SQLException {
        try (var insert = connection.prepareStatement("INSERT INTO effects (name) VALUES (?)")) {
            insert.setString(1, name);
            insert.execute();
        }
    }

    @Override
    public void close() {
        pool.close();
        run(server, "DROP DATABASE " + name + " WITH (FORCE)");
    }
}
