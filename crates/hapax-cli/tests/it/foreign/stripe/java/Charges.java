import com.stripe.Stripe;
import com.stripe.exception.StripeException;
import com.stripe.model.Charge;
import com.stripe.net.RequestOptions;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

/** Charges by Stripe's own library for Java, at the address of the first argument. */
public class Charges {
    public static void main(String[] args) {
        Stripe.apiKey = "sk_test_alice";
        Stripe.overrideApiBase(args[0]);
        Stripe.setMaxNetworkRetries(8);
        told("again", charge("k;1", 100, "pay", null), charge("k;1", 100, "pay", null));
        told("reused", charge("k;1", 999, "pay", null));
        told("accounts", charge("k-2", 100, "pay", "acct_1"), charge("k-2", 100, "pay", "acct_2"));
        CompletableFuture<String> other =
                CompletableFuture.supplyAsync(() -> charge("k-3", 100, "wait", null));
        String one = charge("k-3", 100, "wait", null);
        told("in flight", Stream.of(one, other.join()).sorted().toArray(String[]::new));
        told("failed", charge("k-4", 100, "fail", null), charge("k-4", 100, "fail", null));
        told("vanished", charge("k-5", 100, "vanish", null), charge("k-5", 100, "vanish", null));
    }

    private static String charge(String key, int amount, String does, String account) {
        Map<String, Object> params =
                Map.of("amount", amount, "currency", "eur", "description", does);
        RequestOptions.RequestOptionsBuilder options =
                RequestOptions.builder().setIdempotencyKey(key);
        if (account != null) {
            options.setStripeAccount(account);
        }
        try {
            return Charge.create(params, options.build()).getId();
        } catch (StripeException error) {
            String name = error.getClass().getSimpleName();
            return name + " " + error.getStatusCode() + " " + error.getCode();
        }
    }

    private static void told(String what, String... said) {
        System.out.println(what + ": " + String.join(", ", said));
    }
}
