/** One effect per key, in your own JDBC transaction: start with {@link dev.hapax.once.Hapax}. */
package dev.hapax.once;
