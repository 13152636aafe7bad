// Package once runs an operation once for its key, in a PostgreSQL transaction of the service, and
// answers every later call with what the first one said.
//
// Whether an operation runs, is replayed or refused is decided in the database, by the SQL functions of
// Hapax. This package calls them as a service in Go expects it:
//
//   - [DB.Once] runs work in a transaction of its own, [DB.Within] in one of the caller's;
//   - [DB.Middleware] does so for an HTTP handler, which finds the transaction in its context;
//   - [DB.Emit] publishes an event if the transaction commits;
//   - [DB.Consumer] acts once on each message of a broker.
//
// A DB comes from an adapter: hapax.dev/once/oncepgx for pgx, hapax.dev/once/oncesql for database/sql.
// Those who call such a service find package client beside this one, those who receive its webhooks
// package webhook.
package once
