package dev.hapax.once.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * One effect per key. The method runs in a transaction, which {@code @Transactional} methods it calls join; its answer is
 * stored in the same commit, and every later call hears the same.
 *
 * <p>On a handler of a controller the key is the header {@code Idempotency-Key}, and the tenant is what the
 * {@link TenantResolver} says. On a method of any other bean {@link #key} says what the key is; what the method returns is
 * stored as JSON, and {@link dev.hapax.once.Refused} is thrown again. On a
 * controller it counts for all of its handlers.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.METHOD, ElementType.TYPE})
public @interface Idempotent {
    /** An expression for the key of a call, {@code #order.id} for example; not for handlers of controllers. */
    String key() default "";

    /** An expression for the tenant of a call; that of the settings unless said otherwise. Not for handlers of controllers. */
    String tenant() default "";

    /** The scope; the method and the path of a request, or the class and the name of the method, unless said otherwise. */
    String scope() default "";

    /** JSON pointers to members of the request that may differ between attempts. */
    String[] ignoring() default {};

    /** How long an answer is kept, {@code 24h} for example; that of the settings unless said otherwise. */
    String retention() default "";

    /** How long after that a late retry hears that it is gone; that of the settings unless said otherwise. */
    String tombstone() default "";

    /** How long a duplicate waits for the first; that of the settings unless said otherwise. */
    String patience() default "";
}
