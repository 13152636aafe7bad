package dev.hapax.once.spring;

import dev.hapax.once.Answer;
import dev.hapax.once.Event;
import dev.hapax.once.Hapax;
import dev.hapax.once.Refused;
import dev.hapax.once.testing.Database;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.Id;
import jakarta.persistence.PersistenceContext;
import jakarta.persistence.Table;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.domain.EntityScan;
import org.springframework.boot.autoconfigure.orm.jpa.HibernateJpaAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.annotation.Import;
import org.springframework.dao.CannotAcquireLockException;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** A shop whose ledger is kept with JDBC, or with JPA. */
final class Shop {
    static final AtomicInteger SERVED = new AtomicInteger();

    private Shop() {}

    static ServletWebServerApplicationContext open(Class<?> configuration, Database database, String... properties) {
        SpringApplicationBuilder builder = new SpringApplicationBuilder(configuration)
                .properties("server.port=0", "server.tomcat.basedir=target/tomcat-spring", "server.address=127.0.0.1", "spring.main.banner-mode=off",
                        "spring.jpa.open-in-view=true",
                        "logging.level.root=off", "spring.datasource.hikari.minimum-idle=0",
                        "spring.datasource.url=" + database.jdbcUrl(), "spring.datasource.username=postgres")
                .properties(properties);
        return (ServletWebServerApplicationContext) builder.run();
    }

    @SpringBootConfiguration
    @EnableAutoConfiguration(exclude = HibernateJpaAutoConfiguration.class)
    @Import({JdbcLedger.class, Transfers.class, Payments.class})
    static class OnJdbc {}

    @SpringBootConfiguration
    @EnableAutoConfiguration
    @EntityScan(basePackageClasses = Shop.class)
    @Import({JpaLedger.class, Transfers.class, Payments.class})
    static class OnJpa {}

    interface Ledger {
        void write(String name);

        /** Writes, and is left by an exception: Spring marks the transaction to be rolled back. */
        void writeAndFail(String name);
    }

    static final class NoMoney extends RuntimeException {}

    @Transactional
    static class JdbcLedger implements Ledger {
        private final JdbcTemplate template;

        JdbcLedger(JdbcTemplate template) {
            this.template = template;
        }

        @Override
        public void write(String name) {
            template.update("INSERT INTO effects (name) VALUES (?)", name);
        }

        @Override
        public void writeAndFail(String name) {
            write(name);
            throw new NoMoney();
        }
    }

    @Entity
    @Table(name = "written")
    static class Written {
        @Id
        @GeneratedValue
        Long id;

        String name;
    }

    /** What is persisted is written by a trigger as an effect, when JPA flushes it. */
    @Transactional
    static class JpaLedger implements Ledger {
        @PersistenceContext
        private EntityManager entities;

        @Override
        public void write(String name) {
            Written written = new Written();
            written.name = name;
            entities.persist(written);
        }

        @Override
        public void writeAndFail(String name) {
            write(name);
            throw new NoMoney();
        }
    }

    record Paid(String order, long cents) {}

    /** A service that others call. */
    static class Transfers {
        private final Ledger ledger;

        Transfers(Ledger ledger) {
            this.ledger = ledger;
        }

        @Idempotent(key = "#order", scope = "transfers")
        @Transactional
        public List<Paid> transfer(String order, long cents) {
            ledger.write(order);
            if (cents > 1000) {
                throw new Refused(Answer.text(402, "too much"));
            }
            return List.of(new Paid(order, cents));
        }

        @Idempotent(key = "#p0", tenant = "'other'", retention = "10m")
        public void remember(String order) {
            ledger.write(order);
        }
    }

    @RestController
    static class Payments {
        private final Ledger ledger;
        private final Hapax hapax;

        Payments(Ledger ledger, Hapax hapax) {
            this.ledger = ledger;
            this.hapax = hapax;
        }

        @PostMapping("/payments")
        @ResponseStatus(HttpStatus.CREATED)
        @Idempotent
        Paid pay(@RequestBody Paid paid) {
            ledger.write(paid.order());
            hapax.emit(Event.of("paid", paid.order(), "{}"));
            return paid;
        }

        @PostMapping("/entities")
        @Idempotent
        ResponseEntity<Paid> entity(@RequestBody Paid paid) {
            ledger.write(paid.order());
            return ResponseEntity.created(URI.create("/payments/1")).header("X-A", "b", "c").body(paid);
        }

        @PostMapping("/refused")
        @Idempotent
        Paid refused(@RequestBody Paid paid) {
            ledger.writeAndFail(paid.order());
            return paid;
        }

        @ExceptionHandler
        ResponseEntity<Map<String, String>> noMoney(NoMoney error) {
            return ResponseEntity.status(402).body(Map.of("error", "no money"));
        }

        @PostMapping("/thrown")
        @Idempotent
        Paid thrown(@RequestBody Paid paid) {
            ledger.write(paid.order());
            throw new Refused(Answer.text(402, "no money"));
        }

        @PostMapping("/status")
        @Idempotent
        Paid status(@RequestBody Paid paid) {
            ledger.write(paid.order());
            throw new ResponseStatusException(HttpStatus.CONFLICT, "taken");
        }

        @PostMapping("/broken")
        @Idempotent
        Paid broken(@RequestBody Paid paid) {
            ledger.write(paid.order());
            throw new IllegalStateException("out of paper");
        }

        @PostMapping("/conflict")
        @Idempotent
        Paid conflict(@RequestBody Paid paid) {
            ledger.write(paid.order());
            if (SERVED.incrementAndGet() < 3) {
                throw new CannotAcquireLockException("in the way", new java.sql.SQLException("in the way", "40001"));
            }
            return paid;
        }

        @PostMapping("/form")
        @Idempotent
        String form(@RequestParam String order, @RequestParam long cents) {
            ledger.write(order);
            return order + ":" + cents;
        }

        @GetMapping("/safe")
        @Idempotent
        String safe() {
            return "safe";
        }
    }
}
