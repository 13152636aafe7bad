package dev.hapax.once.servlet;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import dev.hapax.once.Answer;
import dev.hapax.once.internal.HttpDate;
import dev.hapax.once.internal.Json;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.ByteArrayOutputStream;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.Charset;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A response that is kept until its transaction has committed. Nothing reaches the client before.
 *
 * <p>Headers are its own: what is in the way when it is rolled back was never set.
 */
final class BufferedResponse extends HttpServletResponseWrapper {
    private static final Pattern CHARSET = Pattern.compile("(?i);\\s*charset=\"?([^\";\\s]+)\"?");

    private final Map<String, List<String>> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    private final List<Cookie> cookies = new ArrayList<>();
    private final ByteArrayOutputStream body = new ByteArrayOutputStream();
    private int status = SC_OK;
    /** The type without its character set, which may be named before it. */
    private String type;
    private String charset;
    private PrintWriter writer;

    BufferedResponse(HttpServletResponse response) {
        super(response);
    }

    /** What was answered so far. */
    Answer answer() {
        if (writer != null) {
            writer.flush();
        }
        return Answer.of(status).headers(headers).body(body.toByteArray());
    }

    /** Cookies are of one person: they are sent the first time, and never kept. */
    List<Cookie> cookies() {
        return cookies;
    }

    @Override
    public ServletOutputStream getOutputStream() {
        return new ServletOutputStream() {
            @Override
            public void write(int b) {
                body.write(b);
            }

            @Override
            public void write(byte[] bytes, int offset, int length) {
                body.write(bytes, offset, length);
            }

            @Override
            public boolean isReady() {
                return true;
            }

            @Override
            public void setWriteListener(WriteListener listener) {
                throw BufferedRequest.notAsynchronous();
            }
        };
    }

    @Override
    public PrintWriter getWriter() {
        if (writer == null) {
            setCharacterEncoding(getCharacterEncoding());
            writer = new PrintWriter(new OutputStreamWriter(body, Charset.forName(charset)));
        }
        return writer;
    }

    @Override
    public int getStatus() {
        return status;
    }

    @Override
    public void setStatus(int status) {
        this.status = status;
    }

    /** The container's page would be made after the transaction: this is in its place, and is kept like any answer. */
    @Override
    public void sendError(int status, String message) {
        reset();
        setStatus(status);
        setContentType("application/problem+json");
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("title", message == null ? "Status " + status : message);
        document.put("status", status);
        body.writeBytes(Json.text(document).getBytes(UTF_8));
    }

    @Override
    public void sendError(int status) {
        sendError(status, null);
    }

    @Override
    public void sendRedirect(String location) {
        resetBuffer();
        setStatus(SC_FOUND);
        setHeader("Location", location);
    }

    @Override
    public void addCookie(Cookie cookie) {
        cookies.add(cookie);
    }

    @Override
    public boolean containsHeader(String name) {
        return headers.containsKey(name);
    }

    @Override
    public String getHeader(String name) {
        List<String> values = headers.get(name);
        return values == null ? null : values.get(0);
    }

    @Override
    public Collection<String> getHeaders(String name) {
        return List.copyOf(headers.getOrDefault(name, List.of()));
    }

    @Override
    public Collection<String> getHeaderNames() {
        return List.copyOf(headers.keySet());
    }

    @Override
    public void setHeader(String name, String value) {
        headers.remove(name);
        addHeader(name, value);
    }

    /** The length is that of the body, whatever is said of it. */
    @Override
    public void addHeader(String name, String value) {
        if (name.equalsIgnoreCase("Content-Type")) {
            setContentType(value);
        } else if (value != null && !name.equalsIgnoreCase("Content-Length")) {
            headers.computeIfAbsent(name, key -> new ArrayList<>()).add(value);
        }
    }

    @Override
    public void setIntHeader(String name, int value) {
        setHeader(name, Integer.toString(value));
    }

    @Override
    public void addIntHeader(String name, int value) {
        addHeader(name, Integer.toString(value));
    }

    @Override
    public void setDateHeader(String name, long millis) {
        setHeader(name, HttpDate.format(Instant.ofEpochMilli(millis)));
    }

    @Override
    public void addDateHeader(String name, long millis) {
        addHeader(name, HttpDate.format(Instant.ofEpochMilli(millis)));
    }

    @Override
    public void setContentLength(int length) {}

    @Override
    public void setContentLengthLong(long length) {}

    @Override
    public String getContentType() {
        return getHeader("Content-Type");
    }

    @Override
    public void setContentType(String value) {
        Matcher named = CHARSET.matcher(value == null ? "" : value);
        if (named.find() && writer == null) {
            charset = named.group(1);
        }
        type = value == null ? null : named.replaceAll("");
        nameType();
    }

    @Override
    public String getCharacterEncoding() {
        return charset == null ? ISO_8859_1.name() : charset;
    }

    @Override
    public void setCharacterEncoding(String charset) {
        if (writer == null) {
            this.charset = charset;
            nameType();
        }
    }

    private void nameType() {
        headers.remove("Content-Type");
        if (type != null) {
            headers.put("Content-Type", List.of(charset == null ? type : type + ";charset=" + charset));
        }
    }

    @Override
    public void setLocale(Locale locale) {
        setHeader("Content-Language", locale.toLanguageTag());
    }

    @Override
    public boolean isCommitted() {
        return false;
    }

    @Override
    public void flushBuffer() {}

    @Override
    public void resetBuffer() {
        if (writer != null) {
            writer.flush();
        }
        body.reset();
    }

    @Override
    public void reset() {
        resetBuffer();
        headers.clear();
        cookies.clear();
        writer = null;
        type = null;
        charset = null;
        status = SC_OK;
    }
}
