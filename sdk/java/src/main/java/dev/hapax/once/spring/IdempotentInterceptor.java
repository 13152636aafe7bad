package dev.hapax.once.spring;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.hapax.once.Answer;
import dev.hapax.once.CanonicalJson;
import dev.hapax.once.Hapax;
import dev.hapax.once.Operation;
import dev.hapax.once.Refused;
import java.io.IOException;
import java.lang.reflect.Method;
import java.util.List;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.springframework.aop.support.AopUtils;
import org.springframework.context.expression.MethodBasedEvaluationContext;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.ParameterNameDiscoverer;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.util.StringUtils;

/** Runs methods of services that are {@link Idempotent}: what they return is stored as JSON, and returned again. */
final class IdempotentInterceptor implements MethodInterceptor {
    private static final int OK = 200;
    private static final int FAILED_MIN = 400;

    private final SpelExpressionParser expressions = new SpelExpressionParser();
    private final ParameterNameDiscoverer names = new DefaultParameterNameDiscoverer();
    private final Hapax hapax;
    private final ObjectMapper mapper;
    private final String tenant;

    /** The tenant may be empty: then every method has to name one. */
    IdempotentInterceptor(Hapax hapax, ObjectMapper mapper, String tenant) {
        this.hapax = hapax;
        this.mapper = mapper;
        this.tenant = tenant;
    }

    @Override
    public Object invoke(MethodInvocation call) throws Throwable {
        Method method = AopUtils.getMostSpecificMethod(call.getMethod(), call.getThis().getClass());
        Idempotent idempotent = AnnotatedElementUtils.findMergedAnnotation(method, Idempotent.class);
        Object[] returned = {null};
        Hapax once = hapax.with(Settings.of(idempotent, hapax.options()));
        Answer answer = once.once(operation(call, method, idempotent), connection -> {
            returned[0] = proceed(call);
            return Answer.json(OK, mapper.writeValueAsString(returned[0]));
        });
        if (answer.status() >= FAILED_MIN) {
            throw new Refused(answer);
        }
        return answer.replayed() ? read(answer, method) : returned[0];
    }

    private Operation operation(MethodInvocation call, Method method, Idempotent idempotent) throws JsonProcessingException {
        MethodBasedEvaluationContext context =
                new MethodBasedEvaluationContext(call.getThis(), method, call.getArguments(), names);
        String scope = StringUtils.hasText(idempotent.scope())
                ? idempotent.scope()
                : method.getDeclaringClass().getName() + "#" + method.getName();
        byte[] request = mapper.writeValueAsBytes(call.getArguments());
        return Operation.of(
                        StringUtils.hasText(idempotent.tenant()) ? text(idempotent.tenant(), context) : tenant,
                        scope,
                        text(idempotent.key(), context))
                .request(CanonicalJson.of(request, List.of(idempotent.ignoring())).orElse(request));
    }

    private String text(String expression, MethodBasedEvaluationContext context) {
        return expressions.parseExpression(expression).getValue(context, String.class);
    }

    private static Object proceed(MethodInvocation call) throws Exception {
        try {
            return call.proceed();
        } catch (Exception | Error error) {
            throw error;
        } catch (Throwable error) {
            throw new IllegalStateException("Neither an exception nor an error was thrown.", error);
        }
    }

    private Object read(Answer answer, Method method) throws IOException {
        JavaType type = mapper.constructType(method.getGenericReturnType());
        return method.getReturnType() == void.class ? null : mapper.readValue(answer.body(), type);
    }
}
