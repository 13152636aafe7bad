package dev.hapax.once.http;

import static java.util.Objects.requireNonNull;

import dev.hapax.once.Answer;
import dev.hapax.once.CanonicalJson;
import dev.hapax.once.Hapax;
import dev.hapax.once.HapaxException;
import dev.hapax.once.Operation;
import dev.hapax.once.Options;
import dev.hapax.once.Work;
import dev.hapax.once.internal.HttpDate;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * How a route is protected: one effect for each {@code Idempotency-Key}, and the same answer to every retry.
 *
 * <p>Requests are compared by method, path, query and body; JSON in its one spelling, anything else byte by byte. It
 * knows no framework, and cannot be changed: what looks like a setter returns another one.
 */
public final class Protection {
    /** Of one connection, of one answer and of one person. */
    private static final Set<String> NOT_KEPT = Set.of("connection", "keep-alive", "transfer-encoding", "date", "set-cookie");
    private static final Set<String> SAFE =
            Set.of("GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH");
    private static final int SCOPE_CHARACTERS_MAX = 1024;

    private final Hapax hapax;
    private final String scope;
    private final List<String> ignored;
    private final int bodyBytesMax;

    private Protection(Hapax hapax, String scope, List<String> ignored, int bodyBytesMax) {
        this.hapax = requireNonNull(hapax, "hapax");
        this.scope = requireNonNull(scope, "scope");
        this.ignored = List.copyOf(ignored);
        this.bodyBytesMax = bodyBytesMax;
    }

    /** With requests of up to 1 MiB, and the method, a space and the path as the scope. */
    public static Protection by(Hapax hapax) {
        return new Protection(hapax, "", List.of(), 1 << 20);
    }

    /** The same with one scope for everything it protects: a key is then one operation on all of its paths. */
    public Protection scope(String scope) {
        return new Protection(hapax, scope, ignored, bodyBytesMax);
    }

    /** The same, but members of JSON at these pointers ({@code /sent_at}) may differ between attempts. */
    public Protection ignoring(String... pointers) {
        return new Protection(hapax, scope, List.of(pointers), bodyBytesMax);
    }

    /** The same with requests of up to so many bytes. */
    public Protection bodyBytesMax(int bodyBytesMax) {
        return new Protection(hapax, scope, ignored, bodyBytesMax);
    }

    /** The same with other options for its operations. */
    public Protection options(Options options) {
        return new Protection(hapax.with(options), scope, ignored, bodyBytesMax);
    }

    public int bodyBytesMax() {
        return bodyBytesMax;
    }

    /** Whether a request changes something, and so needs a key. */
    public static boolean isNeeded(String method) {
        return !SAFE.contains(method);
    }

    /** What a client hears whose request is larger than the route allows. */
    public Answer tooLarge() {
        return new Problem(Refusal.BODY_TOO_LARGE, "At most " + bodyBytesMax + " bytes are read here.").answer();
    }

    /**
     * What the client hears: what the work says, what it said the first time, or why it is refused.
     *
     * @param tenant who the caller has proved to be; null if it has not
     */
    public <E extends Exception> Answer answer(Incoming request, String tenant, Work<E> work) throws E {
        Operation operation;
        try {
            operation = operation(request, tenant);
        } catch (Problem problem) {
            return problem.answer();
        }
        try {
            return told(operation, work);
        } catch (HapaxException error) {
            return Problem.of(error).map(Problem::answer).orElseThrow(() -> error);
        }
    }

    private <E extends Exception> Answer told(Operation operation, Work<E> work) throws E {
        // What is sent the first time may have more headers than what is kept.
        Answer[] whole = {null};
        Answer answer = hapax.once(operation, connection -> {
            whole[0] = null;
            whole[0] = work.run(connection);
            return whole[0].headers(kept(whole[0].headers()));
        });
        Answer sent = answer.replayed()
                ? answer.header("idempotent-replayed", "true")
                : Optional.ofNullable(whole[0]).orElse(answer);
        return answer.expiresAt().map(instant -> sent.header("idempotency-expires", HttpDate.format(instant))).orElse(sent);
    }

    private Operation operation(Incoming request, String tenant) throws Problem {
        String key = IdempotencyKey.read(request.keys());
        if (tenant == null) {
            throw new Problem(Refusal.CREDENTIAL_MISSING, "It is not known who asks.");
        }
        String usual = request.method() + " " + request.path();
        if (usual.length() > SCOPE_CHARACTERS_MAX) {
            throw new Problem(Refusal.SCOPE_UNUSABLE, "Method and path have at most " + SCOPE_CHARACTERS_MAX + " characters.");
        }
        byte[] compared = isJson(request.contentType())
                ? CanonicalJson.of(request.body(), ignored).orElse(request.body())
                : request.body();
        return Operation.of(tenant, scope.isEmpty() ? usual : scope, key)
                .at(request.method(), request.path(), request.query())
                .request(compared);
    }

    private static boolean isJson(String contentType) {
        String essence = contentType.split(";", 2)[0].strip().toLowerCase(Locale.ROOT);
        return essence.equals("application/json") || essence.equals("text/json") || essence.endsWith("+json");
    }

    private static Map<String, List<String>> kept(Map<String, List<String>> headers) {
        Map<String, List<String>> kept = new LinkedHashMap<>(headers);
        kept.keySet().removeAll(NOT_KEPT);
        return kept;
    }
}
