package dev.hapax.once.servlet;

import static java.util.Objects.requireNonNull;

import dev.hapax.once.http.Protection;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpFilter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.function.Function;

/**
 * One effect for each {@code Idempotency-Key} on the paths this filter is mapped to. The servlet's transaction is that of
 * {@link ServletExchange#connection}.
 *
 * <p>Map it behind all other filters: what comes after it is asked again when another transaction was in the way.
 */
public final class IdempotencyFilter extends HttpFilter {
    private final transient Protection protection;
    private final transient Function<HttpServletRequest, String> tenant;

    /**
     * @param tenant who the caller of a request has proved to be, or null; {@code request -> "shop"} says that there is one
     *     tenant for all
     */
    public IdempotencyFilter(Protection protection, Function<HttpServletRequest, String> tenant) {
        this.protection = requireNonNull(protection, "protection");
        this.tenant = requireNonNull(tenant, "tenant");
    }

    @Override
    protected void doFilter(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (!Protection.isNeeded(request.getMethod())) {
            chain.doFilter(request, response);
            return;
        }
        try {
            ServletExchange.serve(protection, tenant.apply(request), request, response, chain::doFilter);
        } catch (IOException | ServletException | RuntimeException error) {
            throw error;
        } catch (Exception error) {
            throw new ServletException(error);
        }
    }
}
