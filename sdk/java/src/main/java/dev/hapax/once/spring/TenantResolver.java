package dev.hapax.once.spring;

import jakarta.servlet.http.HttpServletRequest;

/** Who the caller of a request has proved to be, never what it says of itself. */
@FunctionalInterface
public interface TenantResolver {
    /** Its tenant; null if it has proved nothing, and is to be refused. */
    String tenant(HttpServletRequest request);
}
