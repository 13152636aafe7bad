package dev.hapax.once.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.hapax.once.Hapax;
import dev.hapax.once.http.Protection;
import dev.hapax.once.servlet.IdempotencyFilter;
import dev.hapax.once.servlet.ServletExchange;
import dev.hapax.once.testing.Container;
import dev.hapax.once.testing.Database;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.sql.SQLException;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.startup.Tomcat;

/** The payments API of sdk/conformance.md, as a servlet behind the filter. */
final class HttpService {
    private static final ObjectMapper JSON = new ObjectMapper();

    private HttpService() {}

    private static final class Payments extends HttpServlet {
        @Override
        protected void doPost(HttpServletRequest request, HttpServletResponse response) throws ServletException, IOException {
            JsonNode payment = JSON.readTree(request.getInputStream());
            String order = payment.path("order").asText();
            try {
                Database.write(ServletExchange.connection(request), order);
            } catch (SQLException error) {
                throw new ServletException(error);
            }
            if (payment.path("cents").asInt() == 0) {
                response.setStatus(402);
                return;
            }
            response.setStatus(HttpServletResponse.SC_CREATED);
            response.addCookie(new Cookie("session", "secret"));
            response.setHeader("X-Paid", "yes");
            response.setContentType("application/json");
            response.getOutputStream().write(
                    JSON.writeValueAsBytes(JSON.createObjectNode().put("paid", order).set("cents", payment.path("cents"))));
        }
    }

    /** Serves it on a free port, as long as the process lives; which one that is. */
    static int serve(Hapax hapax) throws LifecycleException {
        IdempotencyFilter filter =
                new IdempotencyFilter(Protection.by(hapax).ignoring("/sent_at"), request -> request.getHeader("Tenant"));
        Tomcat tomcat = Container.serve("tomcat-agent", new Payments(), filter);
        return tomcat.getConnector().getLocalPort();
    }
}
