package dev.hapax.once.spring;

import dev.hapax.once.Hapax;
import dev.hapax.once.HapaxException;
import dev.hapax.once.Refused;
import dev.hapax.once.http.Protection;
import dev.hapax.once.internal.SqlErrors;
import dev.hapax.once.servlet.ServletExchange;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.HandlerAdapter;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.ModelAndView;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerAdapter;

/**
 * Runs handlers that are {@link Idempotent}: as Spring would, but in a transaction, with the response kept until that has
 * committed. Arguments, return types, message converters and exception handlers are those of the application.
 */
final class IdempotentHandlerAdapter implements HandlerAdapter, Ordered {
    private final Hapax hapax;
    private final ObjectProvider<TenantResolver> tenants;
    private final ObjectProvider<RequestMappingHandlerAdapter> usual;
    private final ObjectProvider<HandlerExceptionResolver> resolver;
    private final Map<HandlerMethod, Protection> protections = new ConcurrentHashMap<>();

    IdempotentHandlerAdapter(
            Hapax hapax,
            ObjectProvider<TenantResolver> tenants,
            ObjectProvider<RequestMappingHandlerAdapter> usual,
            ObjectProvider<HandlerExceptionResolver> resolver) {
        this.hapax = hapax;
        this.tenants = tenants;
        this.usual = usual;
        this.resolver = resolver;
    }

    /** Before Spring's own, which comes last. */
    @Override
    public int getOrder() {
        return 0;
    }

    @Override
    public boolean supports(Object handler) {
        return handler instanceof HandlerMethod method && annotation(method).isPresent();
    }

    static Optional<Idempotent> annotation(HandlerMethod method) {
        Idempotent own = AnnotatedElementUtils.findMergedAnnotation(method.getMethod(), Idempotent.class);
        return Optional.ofNullable(
                own != null ? own : AnnotatedElementUtils.findMergedAnnotation(method.getBeanType(), Idempotent.class));
    }

    @Override
    public ModelAndView handle(HttpServletRequest request, HttpServletResponse response, Object handler) throws Exception {
        if (!Protection.isNeeded(request.getMethod())) {
            return usual.getObject().handle(request, response, handler);
        }
        Protection protection = protections.computeIfAbsent((HandlerMethod) handler, this::protection);
        String tenant = tenants.getObject().tenant(request);
        ServletExchange.serve(protection, tenant, request, response, (asked, kept) -> serve(asked, kept, handler));
        return null;
    }

    private Protection protection(HandlerMethod method) {
        Idempotent idempotent = annotation(method).orElseThrow();
        return Protection.by(hapax)
                .scope(idempotent.scope())
                .ignoring(idempotent.ignoring())
                .options(Settings.of(idempotent, hapax.options()));
    }

    private void serve(HttpServletRequest request, HttpServletResponse response, Object handler) throws Exception {
        ModelAndView view;
        try {
            view = usual.getObject().handle(request, response, handler);
        } catch (Refused | HapaxException ours) {
            throw ours;
        } catch (Exception error) {
            view = isPassing(error) ? null : resolver.getObject().resolveException(request, response, handler, error);
            if (view == null) {
                throw error;
            }
        }
        if (view != null && !view.isEmpty()) {
            throw new IllegalStateException(
                    "An idempotent handler answers with a body, and not with the view " + view.getViewName() + ".");
        }
    }

    /** After such an error everything may be tried again. */
    private static boolean isPassing(Exception error) {
        return SqlErrors.isConflict(error) || SqlErrors.isAway(error);
    }

    @Override
    @Deprecated
    public long getLastModified(HttpServletRequest request, Object handler) {
        return -1;
    }
}
