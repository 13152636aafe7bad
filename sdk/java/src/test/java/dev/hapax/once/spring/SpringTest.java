package dev.hapax.once.spring;

import static dev.hapax.once.testing.Browser.header;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.hapax.once.Answer;
import dev.hapax.once.Hapax;
import dev.hapax.once.HapaxException;
import dev.hapax.once.Operation;
import dev.hapax.once.Refused;
import dev.hapax.once.client.Client;
import dev.hapax.once.client.Result;
import dev.hapax.once.testing.Browser;
import dev.hapax.once.testing.Database;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Applications of Spring Boot, with Tomcat. */
class SpringTest {
    @Nested
    class WithJdbc extends Cases {
        WithJdbc() {
            super(Shop.OnJdbc.class);
        }
    }

    @Nested
    class WithJpa extends Cases {
        WithJpa() {
            super(Shop.OnJpa.class);
        }
    }

    @Test
    void aHandlerWithoutATenantKeepsTheApplicationFromStarting() {
        try (Database database = Database.create()) {
            Exception error = assertThrows(IllegalStateException.class, () -> Shop.open(Shop.OnJdbc.class, database).close());
            assertTrue(error.getMessage().contains("TenantResolver"), error.getMessage());
        }
    }

    @TestInstance(Lifecycle.PER_CLASS)
    abstract static class Cases {
        private final Database database = Database.create();
        private final ServletWebServerApplicationContext shop;
        private final Browser browser;

        Cases(Class<?> configuration) {
            database.run("CREATE TABLE written (id bigint PRIMARY KEY, name text); CREATE SEQUENCE written_seq INCREMENT 50;"
                    + " CREATE FUNCTION count_it() RETURNS trigger LANGUAGE plpgsql AS"
                    + " 'BEGIN INSERT INTO effects (name) VALUES (new.name); RETURN NULL; END';"
                    + " CREATE TRIGGER count_it AFTER INSERT ON written FOR EACH ROW EXECUTE FUNCTION count_it()");
            shop = Shop.open(configuration, database, "hapax.tenant=shop", "hapax.patience=5s");
            browser = new Browser(shop.getWebServer().getPort());
        }

        @AfterAll
        void close() {
            shop.close();
            database.close();
        }

        @AfterEach
        void noConnectionIsKept() {
            assertEquals(0, shop.getBean(com.zaxxer.hikari.HikariDataSource.class).getHikariPoolMXBean().getActiveConnections());
        }

        private HttpResponse<String> pay(String path, String order, long cents) {
            return browser.post(path, order, "{\"order\": \"" + order + "\", \"cents\": " + cents + "}");
        }

        private void check(HttpResponse<String> response, int status, String body, boolean replayed) {
            assertEquals(status, response.statusCode(), response.body());
            assertEquals(body, response.body());
            assertEquals(replayed ? "true" : null, header(response, "idempotent-replayed"));
        }

        @Test
        void aRecordIsAnsweredAsEverAndReplayed() {
            String body = "{\"order\":\"o-1\",\"cents\":100}";
            HttpResponse<String> first = pay("/payments", "o-1", 100);
            check(first, 201, body, false);
            assertNotNull(header(first, "idempotency-expires"));
            HttpResponse<String> second = pay("/payments", "o-1", 100);
            check(second, 201, body, true);
            assertEquals("application/json", header(second, "content-type"));
            assertEquals(422, pay("/payments", "o-1", 101).statusCode());
            assertEquals(1, database.effects("o-1"));
            assertEquals("1", database.text("SELECT count(*) FROM hapax.outbox WHERE key = 'o-1'"));
        }

        @Test
        void aResponseEntityKeepsStatusAndHeaders() {
            HttpResponse<String> first = pay("/entities", "o-entity", 100);
            HttpResponse<String> second = pay("/entities", "o-entity", 100);
            check(second, 201, first.body(), true);
            assertEquals("/payments/1", header(second, "location"));
            assertEquals(List.of("b", "c"), second.headers().allValues("x-a"));
            assertEquals(1, database.effects("o-entity"));
        }

        @Test
        void whatAnExceptionHandlerSaysIsKeptWithoutTheWrites() {
            check(pay("/refused", "o-refused", 100), 402, "{\"error\":\"no money\"}", false);
            check(pay("/refused", "o-refused", 100), 402, "{\"error\":\"no money\"}", true);
            assertEquals(0, database.effects("o-refused"));
        }

        @Test
        void whatIsRefusedIsKeptWithoutTheWrites() {
            check(pay("/thrown", "o-thrown", 100), 402, "no money", false);
            check(pay("/thrown", "o-thrown", 100), 402, "no money", true);
            check(pay("/status", "o-status", 100), 409, "{\"title\":\"taken\",\"status\":409}", false);
            check(pay("/status", "o-status", 100), 409, "{\"title\":\"taken\",\"status\":409}", true);
            assertEquals(0, database.effects("o-thrown") + database.effects("o-status"));
        }

        @Test
        void aRequestThatCannotBeReadIsKept() {
            HttpResponse<String> first = browser.post("/payments", "o-unread", "{\"cents\": \"many\"}");
            assertEquals(400, first.statusCode());
            check(browser.post("/payments", "o-unread", "{\"cents\": \"many\"}"), 400, first.body(), true);
        }

        @Test
        void whatIsNotHandledLeavesNothing() {
            assertEquals(500, pay("/broken", "o-broken", 100).statusCode());
            assertEquals(0, database.effects("o-broken") + database.records("o-broken"));
        }

        @Test
        void aConflictIsServedAgain() {
            Shop.SERVED.set(0);
            check(pay("/conflict", "o-conflict", 100), 200, "{\"order\":\"o-conflict\",\"cents\":100}", false);
            assertEquals(3, Shop.SERVED.get());
            assertEquals(1, database.effects("o-conflict"));
        }

        @Test
        void aCommitThatNobodyAnswersIsToldAsSuch() {
            database.run("CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS"
                    + " $$ BEGIN RAISE EXCEPTION USING ERRCODE = '08006'; END $$;"
                    + " CREATE CONSTRAINT TRIGGER losing AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED"
                    + " FOR EACH ROW WHEN (new.name = 'o-lost') EXECUTE FUNCTION lose()");
            HttpResponse<String> lost = pay("/payments", "o-lost", 100);
            assertEquals("outcome-not-recorded", header(lost, "hapax-refusal"), lost.body());
            assertEquals(0, database.effects("o-lost") + database.records("o-lost"));
        }

        @Test
        void ourClientIsAnsweredOnceForEachKey() throws Exception {
            HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + browser.port() + "/payments"))
                    .header("Content-Type", "application/json")
                    .POST(BodyPublishers.ofString("{\"order\": \"o-client\", \"cents\": 1}"))
                    .build();
            Client client = Client.on(HttpClient.newHttpClient());
            for (boolean isReplayed : new boolean[] {false, true}) {
                Result result = client.send(request, "charge \"o-client\"");
                assertEquals(201, result.done().statusCode());
                assertEquals(isReplayed, result.isReplayed());
            }
            assertEquals(1, database.effects("o-client"));
        }

        @Test
        void aFormIsReadAsEver() {
            HttpResponse<String> first = browser.send(
                    "POST", "/form", "application/x-www-form-urlencoded", "order=o-form&cents=7", "Idempotency-Key", "o-form");
            check(first, 200, "o-form:7", false);
            assertEquals(1, database.effects("o-form"));
        }

        @Test
        void aKeyIsAskedForWhereSomethingChanges() {
            HttpResponse<String> missing = browser.send("POST", "/payments", "application/json", "{}");
            assertEquals("key-missing", header(missing, "hapax-refusal"));
            assertEquals("safe", browser.send("GET", "/safe", "text/plain", "").body());
            assertNull(header(browser.send("GET", "/safe", "text/plain", ""), "idempotency-expires"));
        }

        @Test
        void aMethodOfAServiceReturnsTheSameObject() {
            Shop.Transfers transfers = shop.getBean(Shop.Transfers.class);
            assertEquals(List.of(new Shop.Paid("t-1", 5)), transfers.transfer("t-1", 5));
            assertEquals(List.of(new Shop.Paid("t-1", 5)), transfers.transfer("t-1", 5));
            assertThrows(HapaxException.Mismatch.class, () -> transfers.transfer("t-1", 6));
            assertEquals(1, database.effects("t-1"));
            for (int call = 0; call < 2; call++) {
                Refused refused = assertThrows(Refused.class, () -> transfers.transfer("t-2", 2000));
                assertEquals("too much", refused.answer().text());
            }
            assertEquals(0, database.effects("t-2"));
            transfers.remember("t-3");
            transfers.remember("t-3");
            assertEquals(1, database.effects("t-3"));
            assertEquals("other", database.text("SELECT tenant FROM hapax.operations WHERE key = 't-3'"));
        }

        @Test
        void aTransactionThatWasBegunFurtherOutIsJoined() {
            TransactionTemplate further = new TransactionTemplate(shop.getBean(PlatformTransactionManager.class));
            Shop.Ledger ledger = shop.getBean(Shop.Ledger.class);
            Hapax hapax = shop.getBean(Hapax.class);
            for (String key : List.of("j-committed", "j-rolled-back")) {
                further.executeWithoutResult(status -> {
                    ledger.write(key);
                    hapax.once(Operation.of("shop", "joined", key), connection -> {
                        ledger.write(key);
                        return Answer.of(201);
                    });
                    hapax.once(Operation.of("shop", "joined", key + "-refused"), connection -> {
                        ledger.write(key);
                        throw new Refused(Answer.of(402));
                    });
                    if (key.equals("j-rolled-back")) {
                        status.setRollbackOnly();
                    }
                });
            }
            assertEquals(2, database.effects("j-committed"));
            assertEquals(1, database.records("j-committed-refused"));
            assertEquals(0, database.effects("j-rolled-back") + database.records("j-rolled-back"));
        }
    }
}
