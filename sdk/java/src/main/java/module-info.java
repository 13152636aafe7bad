/** Hapax for Java. Only the JDK is needed; the other modules are for those who use them. */
module dev.hapax.once {
    requires transitive java.sql;
    requires static com.fasterxml.jackson.databind;
    requires static com.rabbitmq.client;
    requires static jakarta.persistence;
    requires static jakarta.servlet;
    requires static java.net.http;
    requires static kafka.clients;
    requires static spring.amqp;
    requires static spring.aop;
    requires static spring.beans;
    requires static spring.boot.autoconfigure;
    requires static spring.boot;
    requires static spring.context;
    requires static spring.core;
    requires static spring.expression;
    requires static spring.jdbc;
    requires static spring.kafka;
    requires static spring.orm;
    requires static spring.rabbit;
    requires static spring.tx;
    requires static spring.web;
    requires static spring.webmvc;

    exports dev.hapax.once;
    exports dev.hapax.once.client;
    exports dev.hapax.once.http;
    exports dev.hapax.once.servlet;
    exports dev.hapax.once.spring;
    exports dev.hapax.once.webhook;

    opens dev.hapax.once.spring;
}
