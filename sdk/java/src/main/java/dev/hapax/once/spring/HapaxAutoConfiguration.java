package dev.hapax.once.spring;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.hapax.once.Hapax;
import java.lang.reflect.Method;
import javax.sql.DataSource;
import org.springframework.aop.support.AopUtils;
import org.springframework.aop.support.DefaultBeanFactoryPointcutAdvisor;
import org.springframework.aop.support.StaticMethodMatcherPointcut;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Role;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.stereotype.Controller;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerAdapter;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;

/** A {@link Hapax} on the application's data source and transaction manager, and what makes {@link Idempotent} work. */
@AutoConfiguration(
        afterName = {
            "org.springframework.boot.autoconfigure.jdbc.DataSourceTransactionManagerAutoConfiguration",
            "org.springframework.boot.autoconfigure.orm.jpa.HibernateJpaAutoConfiguration",
            "org.springframework.boot.autoconfigure.jackson.JacksonAutoConfiguration",
            "org.springframework.boot.autoconfigure.web.servlet.WebMvcAutoConfiguration"
        })
@ConditionalOnClass(DataSourceUtils.class)
@ConditionalOnSingleCandidate(DataSource.class)
@ConditionalOnBean(PlatformTransactionManager.class)
@EnableConfigurationProperties(HapaxProperties.class)
public class HapaxAutoConfiguration {
    @Bean
    @ConditionalOnMissingBean
    Hapax hapax(PlatformTransactionManager manager, DataSource source, HapaxProperties properties) {
        return Hapax.on(new SpringTransactions(manager, source)).with(properties.options());
    }

    /** Handlers of controllers. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnClass(RequestMappingHandlerAdapter.class)
    static class Handlers {
        @Bean
        @ConditionalOnMissingBean
        @ConditionalOnProperty("hapax.tenant")
        TenantResolver hapaxTenantResolver(HapaxProperties properties) {
            return request -> properties.tenant();
        }

        @Bean
        IdempotentHandlerAdapter idempotentHandlerAdapter(
                Hapax hapax,
                ObjectProvider<TenantResolver> tenants,
                ObjectProvider<RequestMappingHandlerAdapter> usual,
                @Qualifier("handlerExceptionResolver") ObjectProvider<HandlerExceptionResolver> resolver) {
            return new IdempotentHandlerAdapter(hapax, tenants, usual, resolver);
        }

        /** There is no default: that there is one tenant for all has to be said. */
        @Bean
        SmartInitializingSingleton hapaxTenantCheck(
                ObjectProvider<TenantResolver> tenants,
                @Qualifier("requestMappingHandlerMapping") ObjectProvider<RequestMappingHandlerMapping> mapping) {
            return () -> mapping.ifAvailable(handlers -> handlers.getHandlerMethods().values().forEach(method -> {
                if (IdempotentHandlerAdapter.annotation(method).isPresent() && tenants.getIfAvailable() == null) {
                    throw new IllegalStateException(method + " is @Idempotent, and nobody says which tenant calls it:"
                            + " add a bean of type TenantResolver, or set hapax.tenant where there is one for all.");
                }
            }));
        }
    }

    /** Methods of services. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(ObjectMapper.class)
    @ConditionalOnBean(ObjectMapper.class)
    static class Services {
        private static final String ADVICE = "idempotentInterceptor";

        @Bean(ADVICE)
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        IdempotentInterceptor idempotentInterceptor(Hapax hapax, ObjectMapper mapper, HapaxProperties properties) {
            return new IdempotentInterceptor(hapax, mapper, properties.tenant());
        }

        /** Outside of {@code @Transactional}, which comes last, so that a conflict can be tried again. */
        @Bean
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        static DefaultBeanFactoryPointcutAdvisor idempotentAdvisor() {
            DefaultBeanFactoryPointcutAdvisor advisor = new DefaultBeanFactoryPointcutAdvisor();
            advisor.setPointcut(new OfServices());
            advisor.setAdviceBeanName(ADVICE);
            advisor.setOrder(Ordered.LOWEST_PRECEDENCE - 1);
            return advisor;
        }
    }

    private static final class OfServices extends StaticMethodMatcherPointcut {
        @Override
        public boolean matches(Method method, Class<?> target) {
            Method own = AopUtils.getMostSpecificMethod(method, target);
            return AnnotatedElementUtils.hasAnnotation(own, Idempotent.class)
                    && !AnnotatedElementUtils.hasAnnotation(target, Controller.class);
        }
    }
}
