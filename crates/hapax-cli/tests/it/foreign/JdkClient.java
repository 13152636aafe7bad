import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;

/** Java's own client with nothing set: over plain HTTP it asks for HTTP/2 by `Upgrade`. */
public class JdkClient {
    /** Sends one request for each key to the first argument, each key once more at the end. */
    public static void main(String[] args) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        for (int at = 1; at < args.length; at++) {
            pay(client, args[0], args[at]);
        }
        for (int at = 1; at < args.length; at++) {
            pay(HttpClient.newHttpClient(), args[0], args[at]);
        }
    }

    private static void pay(HttpClient client, String url, String key) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url));
        request.header("Authorization", "alice").header("Idempotency-Key", key);
        request.POST(BodyPublishers.ofString("ten"));
        HttpResponse<String> answer = client.send(request.build(), BodyHandlers.ofString());
        String replayed = answer.headers().firstValue("idempotent-replayed").orElse("false");
        System.out.println(answer.statusCode() + " " + replayed + " " + answer.body());
    }
}
