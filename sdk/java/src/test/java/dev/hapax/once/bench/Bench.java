package dev.hapax.once.bench;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.zaxxer.hikari.HikariDataSource;
import dev.hapax.once.Answer;
import dev.hapax.once.Hapax;
import dev.hapax.once.Operation;
import dev.hapax.once.spring.SpringTransactions;
import dev.hapax.once.testing.Database;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * What the SDK costs: payments through `once` against the same with the SQL functions by hand, on the same pool, in rounds
 * that take turns. Commits do not wait for the disk, whose pauses would hide the difference.
 */
public final class Bench {
    private static final int WARM_UP_ROUNDS = 300;
    private static final int ROUNDS = 600;
    private static final int PAYMENTS = 10;
    private static final byte[] REQUEST = "{\"cents\":100}".getBytes(UTF_8);
    private static final AtomicInteger KEYS = new AtomicInteger();

    private Bench() {}

    private interface Payment {
        void pay(String key) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        try (Database database = Database.create();
                HikariDataSource pool = Database.pool(database.url() + "?options=-c%20synchronous_commit=off")) {
            Hapax jdbc = Hapax.on(pool);
            compare("jdbc", key -> byHand(pool, key), key -> once(jdbc, key));
            JdbcTransactionManager manager = new JdbcTransactionManager(pool);
            TransactionTemplate template = new TransactionTemplate(manager);
            Hapax spring = Hapax.on(new SpringTransactions(manager, pool));
            compare("spring", key -> byHand(pool, template, key), key -> once(spring, key));
        }
    }

    private static void once(Hapax hapax, String key) throws Exception {
        Operation operation = Operation.of("shop", "POST /payments", key).at("POST", "/payments", "").request(REQUEST);
        hapax.once(operation, connection -> {
            Database.write(connection, key);
            return Answer.json(201, "{\"paid\":true}");
        });
    }

    private static void byHand(HikariDataSource pool, String key) throws Exception {
        try (Connection connection = pool.getConnection()) {
            connection.setAutoCommit(false);
            pay(connection, key);
            connection.commit();
        }
    }

    private static void byHand(HikariDataSource pool, TransactionTemplate template, String key) {
        template.executeWithoutResult(status -> {
            try {
                pay(DataSourceUtils.getConnection(pool), key);
            } catch (SQLException error) {
                throw new IllegalStateException(error);
            }
        });
    }

    private static void pay(Connection connection, String key) throws SQLException {
        UUID operation;
        long fence;
        try (PreparedStatement begin = connection.prepareStatement("SELECT decision, operation, fence, status, headers,"
                + " body, retry_after, differs, expires_at FROM hapax.begin(?, ?, ?, ?, ?, ?, ?)")) {
            begin.setString(1, "shop");
            begin.setString(2, "POST /payments");
            begin.setString(3, key);
            begin.setBytes(4, REQUEST);
            begin.setString(5, "POST");
            begin.setString(6, "/payments");
            begin.setString(7, "");
            try (ResultSet row = begin.executeQuery()) {
                row.next();
                operation = row.getObject("operation", UUID.class);
                fence = row.getLong("fence");
            }
        }
        connection.setSavepoint();
        Database.write(connection, key);
        try (PreparedStatement finish = connection.prepareStatement("SELECT hapax.finish(?, ?, ?, ?::jsonb, ?)")) {
            finish.setObject(1, operation);
            finish.setLong(2, fence);
            finish.setInt(3, 201);
            finish.setString(4, "{\"content-type\":\"application/json\"}");
            finish.setBytes(5, "{\"paid\":true}".getBytes(UTF_8));
            finish.execute();
        }
    }

    /** Rounds are short, so that what else the machine does falls on both. */
    private static void compare(String name, Payment byHand, Payment once) throws Exception {
        for (int round = 0; round < WARM_UP_ROUNDS; round++) {
            round(byHand);
            round(once);
        }
        List<Double> hands = new ArrayList<>();
        List<Double> calls = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            hands.add(round(byHand));
            calls.add(round(once));
        }
        System.out.printf(Locale.ROOT, "{\"driver\": \"%s\", \"hand_us\": %.0f, \"once_us\": %.0f, \"ratio\": %.3f}%n",
                name, median(hands), median(calls), median(calls) / median(hands));
    }

    private static double round(Payment payment) throws Exception {
        long start = System.nanoTime();
        for (int paid = 0; paid < PAYMENTS; paid++) {
            payment.pay("bench-" + KEYS.incrementAndGet());
        }
        return (System.nanoTime() - start) / 1000.0 / PAYMENTS;
    }

    private static double median(List<Double> values) {
        return values.stream().sorted().skip(values.size() / 2).findFirst().orElseThrow();
    }
}
