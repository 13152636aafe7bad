package dev.hapax.once.servlet;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.nio.charset.Charset;
import java.util.Collections;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;

/** A request whose body was read, and can be read again. */
final class BufferedRequest extends HttpServletRequestWrapper {
    private final byte[] body;
    private Map<String, String[]> parameters;

    BufferedRequest(HttpServletRequest request, byte[] body) {
        super(request);
        this.body = body;
    }

    @Override
    public ServletInputStream getInputStream() {
        ByteArrayInputStream bytes = new ByteArrayInputStream(body);
        return new ServletInputStream() {
            @Override
            public int read() {
                return bytes.read();
            }

            @Override
            public int read(byte[] into, int offset, int length) {
                return bytes.read(into, offset, length);
            }

            @Override
            public boolean isFinished() {
                return bytes.available() == 0;
            }

            @Override
            public boolean isReady() {
                return true;
            }

            @Override
            public void setReadListener(ReadListener listener) {
                throw notAsynchronous();
            }
        };
    }

    @Override
    public BufferedReader getReader() {
        String charset = getCharacterEncoding();
        Charset named = charset == null ? ISO_8859_1 : Charset.forName(charset);
        return new BufferedReader(new InputStreamReader(getInputStream(), named));
    }

    @Override
    public String getParameter(String name) {
        String[] values = getParameterMap().get(name);
        return values == null ? null : values[0];
    }

    @Override
    public Enumeration<String> getParameterNames() {
        return Collections.enumeration(getParameterMap().keySet());
    }

    @Override
    public String[] getParameterValues(String name) {
        return getParameterMap().get(name);
    }

    /** The container knows those of the query alone, since the form was read before it could. */
    @Override
    public Map<String, String[]> getParameterMap() {
        if (parameters == null) {
            parameters = new LinkedHashMap<>(super.getParameterMap());
            if (isForm()) {
                readForm();
            }
        }
        return Collections.unmodifiableMap(parameters);
    }

    private boolean isForm() {
        String type = getContentType();
        return type != null && type.toLowerCase(Locale.ROOT).startsWith("application/x-www-form-urlencoded");
    }

    private void readForm() {
        for (String pair : new String(body, UTF_8).split("&")) {
            if (!pair.isEmpty()) {
                String[] halves = pair.split("=", 2);
                String value = halves.length == 1 ? "" : URLDecoder.decode(halves[1], UTF_8);
                parameters.merge(URLDecoder.decode(halves[0], UTF_8), new String[] {value}, (before, more) ->
                        Stream.of(before, more).flatMap(Stream::of).toArray(String[]::new));
            }
        }
    }

    @Override
    public boolean isAsyncSupported() {
        return false;
    }

    @Override
    public AsyncContext startAsync() {
        throw notAsynchronous();
    }

    @Override
    public AsyncContext startAsync(ServletRequest request, ServletResponse response) {
        throw notAsynchronous();
    }

    static IllegalStateException notAsynchronous() {
        return new IllegalStateException("A protected route answers in its transaction, and so not asynchronously.");
    }
}
