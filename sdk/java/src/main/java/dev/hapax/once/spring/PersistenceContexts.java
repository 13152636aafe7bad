package dev.hapax.once.spring;

import jakarta.persistence.EntityManager;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.springframework.orm.jpa.EntityManagerHolder;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.util.ClassUtils;

/** What JPA has not written yet, or has read, in the transaction of this thread; nothing where there is no JPA. */
final class PersistenceContexts {
    private static final boolean IS_JPA_THERE = ClassUtils.isPresent(
            "org.springframework.orm.jpa.EntityManagerHolder", PersistenceContexts.class.getClassLoader());

    private PersistenceContexts() {}

    /** Writes what belongs before a savepoint. */
    static void flush() {
        if (IS_JPA_THERE) {
            Jpa.contexts().forEach(EntityManager::flush);
        }
    }

    /** Forgets what was done since a savepoint, and would still be written. */
    static void clear() {
        if (IS_JPA_THERE) {
            Jpa.contexts().forEach(EntityManager::clear);
        }
    }

    /**
     * Puts those aside that a request has outside of any transaction (open in view): a transaction then begins with nothing
     * read, and on a connection that is not broken. What is returned puts them back.
     */
    static Runnable setAside() {
        if (!IS_JPA_THERE || TransactionSynchronizationManager.isActualTransactionActive()) {
            return () -> {};
        }
        Map<Object, Object> aside = Jpa.bound();
        aside.keySet().forEach(TransactionSynchronizationManager::unbindResource);
        return () -> aside.forEach(TransactionSynchronizationManager::bindResource);
    }

    private static final class Jpa {
        static List<EntityManager> contexts() {
            return bound().values().stream().map(holder -> ((EntityManagerHolder) holder).getEntityManager()).toList();
        }

        static Map<Object, Object> bound() {
            Map<Object, Object> bound = new HashMap<>(TransactionSynchronizationManager.getResourceMap());
            bound.values().removeIf(holder -> !(holder instanceof EntityManagerHolder));
            return bound;
        }
    }
}
