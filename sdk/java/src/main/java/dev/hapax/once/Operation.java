package dev.hapax.once;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * What is done once: a tenant, a scope and a key, and what makes two requests for it the same.
 *
 * <p>The tenant is who the caller has proved to be, never what it says of itself; the scope is usually the method, a
 * space and the path. It cannot be changed; what looks like a setter returns another one.
 */
public final class Operation {
    private final String tenant;
    private final String scope;
    private final String key;
    private final String method;
    private final String path;
    private final String query;
    private final byte[] request;

    private Operation(String tenant, String scope, String key, String method, String path, String query, byte[] request) {
        this.tenant = tenant;
        this.scope = scope;
        this.key = key;
        this.method = Names.given("The method", method);
        this.path = Names.given("The path", path);
        this.query = Names.given("The query", query);
        this.request = request;
    }

    /** An operation whose requests are all alike, until {@link #request} says more. */
    public static Operation of(String tenant, String scope, String key) {
        return new Operation(
                Names.check("The tenant", tenant, Names.KEY_MAX),
                Names.check("The scope", scope, Names.SCOPE_MAX),
                Names.check("The key", key, Names.KEY_MAX),
                "", "", "", new byte[0]);
    }

    /** The same with these bytes as what was asked for. */
    public Operation request(byte[] request) {
        return new Operation(tenant, scope, key, method, path, query, Names.given("The request", request).clone());
    }

    /** The same with this text, in UTF-8, as what was asked for. */
    public Operation request(String request) {
        return request(Names.given("The request", request).getBytes(UTF_8));
    }

    /** The same with method, path and query, which are compared like the request. */
    public Operation at(String method, String path, String query) {
        return new Operation(tenant, scope, key, method, path, query, request);
    }

    public String tenant() {
        return tenant;
    }

    public String scope() {
        return scope;
    }

    public String key() {
        return key;
    }

    public String method() {
        return method;
    }

    public String path() {
        return path;
    }

    public String query() {
        return query;
    }

    public byte[] request() {
        return request.clone();
    }

    boolean isNamedLike(Operation other) {
        return tenant.equals(other.tenant) && scope.equals(other.scope) && key.equals(other.key);
    }

    @Override
    public String toString() {
        return "Operation[" + tenant + ", " + scope + ", " + key + "]";
    }
}
