package dev.hapax.once.agent;

import com.fasterxml.jackson.databind.JsonNode;
import dev.hapax.once.Answer;
import dev.hapax.once.Hapax;
import dev.hapax.once.spring.SpringTransactions;
import java.sql.Connection;
import javax.sql.DataSource;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionStatus;
import org.springframework.transaction.support.DefaultTransactionDefinition;

/** Transactions of Spring: the work uses a template, and a transaction that was begun further out is joined. */
record SpringDriver(Hapax hapax, PlatformTransactionManager manager, JdbcTemplate template) implements Driver {
    static SpringDriver on(DataSource source) {
        PlatformTransactionManager manager = new JdbcTransactionManager(source);
        Hapax hapax = Hapax.on(new SpringTransactions(manager, source));
        return new SpringDriver(hapax, manager, new JdbcTemplate(source));
    }

    @Override
    public Driver another() {
        return on(template.getDataSource());
    }

    @Override
    public Answer once(JsonNode command) throws Exception {
        return once(command, false);
    }

    private Answer once(JsonNode command, boolean isTwice) throws Exception {
        return hapax.with(Command.options(command)).once(Command.operation(command), connection -> isTwice
                ? once(command, false)
                : run(command));
    }

    @Override
    public Answer within(JsonNode command, String how) throws Exception {
        if (how.equals("autocommit")) {
            try (Connection connection = template.getDataSource().getConnection()) {
                return hapax.within(connection, Command.operation(command), same -> run(command));
            }
        }
        TransactionStatus transaction = manager.getTransaction(new DefaultTransactionDefinition());
        try {
            if (how.equals("aborted")) {
                fail();
            }
            Answer answer = once(command, how.equals("twice"));
            if (how.equals("transaction")) {
                manager.commit(transaction);
            }
            return answer;
        } finally {
            if (!transaction.isCompleted()) {
                manager.rollback(transaction);
            }
        }
    }

    private void fail() {
        try {
            template.execute("SELECT 1 / 0");
        } catch (DataAccessException expected) {
            // The transaction is aborted from here on.
        }
    }

    private Answer run(JsonNode command) throws Exception {
        Work.Writer writer = name -> {
            write(name);
            nest(command);
        };
        return new Work(command.path("work")).run(writer, hapax::emit);
    }

    @Override
    public void handle(Work work, Connection connection) throws Exception {
        work.handle(this::write, hapax::emit);
    }

    private void write(String name) {
        template.update("INSERT INTO effects (name) VALUES (?)", name);
    }
}
