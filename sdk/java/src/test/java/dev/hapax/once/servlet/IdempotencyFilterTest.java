package dev.hapax.once.servlet;

import static dev.hapax.once.testing.Browser.header;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.hapax.once.Hapax;
import dev.hapax.once.http.Protection;
import dev.hapax.once.testing.Browser;
import dev.hapax.once.testing.Container;
import dev.hapax.once.testing.Database;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.catalina.startup.Tomcat;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A servlet behind the filter, in Tomcat. */
class IdempotencyFilterTest {
    private static final AtomicInteger SERVED = new AtomicInteger();
    private static Database database;
    private static Tomcat tomcat;
    private static Browser browser;

    /** Writes an effect that is called like its key, and answers as its path says. */
    private static final class Payments extends HttpServlet {
        @Override
        protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
            SERVED.incrementAndGet();
            if (request.getMethod().equals("GET")) {
                response.getWriter().print("safe");
                return;
            }
            try {
                answer(request, response, ServletExchange.connection(request));
            } catch (SQLException error) {
                throw new IllegalStateException(error);
            }
        }

        private void answer(HttpServletRequest request, HttpServletResponse response, Connection connection)
                throws IOException, SQLException {
            Database.write(connection, request.getHeader("Idempotency-Key"));
            switch (request.getPathInfo()) {
                case "/pay" -> {
                    response.setStatus(HttpServletResponse.SC_CREATED);
                    response.addCookie(new Cookie("session", "secret"));
                    response.addHeader("Set-Cookie", "theme=dark");
                    response.addHeader("X-Part", "one");
                    response.addHeader("X-Part", "two");
                    response.setContentType("text/plain");
                    response.setCharacterEncoding("UTF-8");
                    response.getWriter().print("paid " + new String(request.getInputStream().readAllBytes()) + " ü");
                }
                case "/form" -> response.getWriter().print(request.getParameter("cents") + "/" + request.getParameter("q"));
                case "/error" -> response.sendError(402, "no money");
                case "/redirect" -> response.sendRedirect("/elsewhere");
                case "/later" -> response.setStatus(503);
                case "/throws" -> throw new IllegalStateException("out of paper");
                case "/async" -> request.startAsync();
                case "/conflict" -> {
                    if (SERVED.get() % 2 == 1) {
                        throw new IllegalStateException(new SQLException("in the way", "40001"));
                    }
                    response.getWriter().print("paid");
                }
                default -> response.sendError(404);
            }
        }
    }

    @BeforeAll
    static void start() throws Exception {
        database = Database.create();
        Protection protection = Protection.by(Hapax.on(database.pool())).ignoring("/sent_at").bodyBytesMax(1000);
        IdempotencyFilter filter =
                new IdempotencyFilter(protection, request -> request.getHeader("Tenant") == null ? "shop" : null);
        tomcat = Container.serve("tomcat-filter", new Payments(), filter);
        browser = new Browser(tomcat.getConnector().getLocalPort());
    }

    @AfterAll
    static void stop() throws Exception {
        tomcat.stop();
        database.close();
    }

    private static void check(HttpResponse<String> response, int status, String body, boolean replayed) {
        assertEquals(status, response.statusCode(), response.body());
        assertEquals(body, response.body());
        assertEquals(replayed ? "true" : null, header(response, "idempotent-replayed"));
    }

    @Test
    void aRetryHearsTheSameBytes() {
        HttpResponse<String> first = browser.post("/pay", "k-pay", "{\"cents\": 100}");
        check(first, 201, "paid {\"cents\": 100} ü", false);
        HttpResponse<String> second = browser.post("/pay", "\"k-pay\"", "{\"cents\":1e2}");
        check(second, 201, first.body(), true);
        assertEquals(first.headers().allValues("x-part"), second.headers().allValues("x-part"));
        assertEquals("text/plain;charset=UTF-8", header(second, "content-type"));
        assertNotNull(header(first, "idempotency-expires"));
        assertEquals(header(first, "idempotency-expires"), header(second, "idempotency-expires"));
        assertEquals(List.of("theme=dark", "session=secret"), first.headers().allValues("set-cookie"));
        assertNull(header(second, "set-cookie"));
        assertEquals(1, database.effects("k-pay"));
    }

    @Test
    void anotherRequestUnderTheKeyIsTold() {
        browser.post("/pay", "k-other", "{\"cents\": 100}");
        HttpResponse<String> other = browser.post("/pay?dry=1", "k-other", "{\"cents\": 101}");
        assertEquals(422, other.statusCode());
        assertTrue(other.body().contains("\"differs\":[\"query\",\"body\"]"), other.body());
        assertEquals("key-reused", header(other, "hapax-refusal"));
        assertEquals(1, database.effects("k-other"));
    }

    @Test
    void membersThatAreLeftOutMayDiffer() {
        browser.post("/pay", "k-ignored", "{\"cents\": 100, \"sent_at\": 1}");
        HttpResponse<String> again = browser.post("/pay", "k-ignored", "{\"sent_at\": 2, \"cents\": 100}");
        assertEquals("true", header(again, "idempotent-replayed"));
    }

    @Test
    void whatIsNoJsonIsComparedByteByByte() {
        browser.send("POST", "/pay", "text/plain", "{\"cents\": 100}", "Idempotency-Key", "k-bytes");
        HttpResponse<String> other = browser.send("POST", "/pay", "text/plain", "{\"cents\":100}", "Idempotency-Key", "k-bytes");
        assertEquals(422, other.statusCode());
    }

    @Test
    void aFormIsReadAsEver() {
        HttpResponse<String> first = browser.send(
                "POST", "/form?q=x", "application/x-www-form-urlencoded", "cents=1%30&a=b", "Idempotency-Key", "k-form");
        check(first, 200, "10/x", false);
    }

    @Test
    void aRequestWithoutAKeyOrATenantIsRefused() {
        assertEquals("key-missing", header(browser.send("POST", "/pay", "text/plain", ""), "hapax-refusal"));
        HttpResponse<String> nobody = browser.send("POST", "/pay", "text/plain", "", "Idempotency-Key", "k", "Tenant", "none");
        assertEquals(401, nobody.statusCode());
        HttpResponse<String> large = browser.post("/pay", "k-large", "x".repeat(1001));
        assertEquals("body-too-large", header(large, "hapax-refusal"));
    }

    @Test
    void whatChangesNothingPasses() {
        assertEquals("safe", browser.send("GET", "/pay", "text/plain", "").body());
    }

    @Test
    void anErrorThatIsSentIsKeptWithoutItsWrites() {
        HttpResponse<String> first = browser.post("/error", "k-error", "{}");
        check(first, 402, "{\"title\":\"no money\",\"status\":402}", false);
        check(browser.post("/error", "k-error", "{}"), 402, first.body(), true);
        assertEquals(0, database.effects("k-error"));
    }

    @Test
    void aRedirectIsAnAnswer() {
        assertEquals("/elsewhere", header(browser.post("/redirect", "k-redirect", "{}"), "location"));
        assertEquals("/elsewhere", header(browser.post("/redirect", "k-redirect", "{}"), "location"));
        assertEquals(1, database.effects("k-redirect"));
    }

    @Test
    void whatMayPassLeavesNothing() {
        HttpResponse<String> later = browser.post("/later", "k-later", "{}");
        check(later, 503, "", false);
        assertNull(header(later, "idempotency-expires"));
        assertEquals(500, browser.post("/throws", "k-throws", "{}").statusCode());
        assertEquals(500, browser.post("/async", "k-async", "{}").statusCode());
        for (String key : new String[] {"k-later", "k-throws", "k-async"}) {
            assertEquals(0, database.effects(key) + database.records(key), key);
        }
    }

    @Test
    void aConflictIsServedAgain() {
        SERVED.set(0);
        check(browser.post("/conflict", "k-conflict", "{}"), 200, "paid", false);
        assertEquals(1, database.effects("k-conflict"));
    }
}
