// Package testdb gives tests, and the benchmark, a database of their own, with the schema and a table of
// effects, on a real server, and says where the other servers are.
package testdb

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// What work writes to. A commit with a name that begins with "slow" takes its time.
const tables = `
	CREATE TABLE effects (name text NOT NULL);
	CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN IF new.name LIKE ''slow%'' THEN PERFORM pg_sleep(0.3); END IF; RETURN NULL; END';
	CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION dawdle();`

// What tests leave behind, but for events.
const leftovers = `DELETE FROM effects; DELETE FROM hapax.operations; DELETE FROM hapax.inbox;
	DELETE FROM hapax.inbox_attempts; DELETE FROM hapax.inbox_dead; DELETE FROM hapax.inbox_consumers`

// A Database is one that a test has for itself.
type Database struct {
	t   testing.TB
	url *url.URL
}

// What the tests of a package share, one after the other; nil if each makes its own.
var shared *url.URL

// Main runs the tests of a package with one database for all of them: making one takes a while.
func Main(m *testing.M) {
	os.Exit(func() int {
		server, err := Find("postgres")
		if err != nil {
			// The tests say so themselves.
			return m.Run()
		}
		made, drop, err := Create(server)
		if err != nil {
			log.Println(err)
			return 1
		}
		defer drop()
		shared = made
		return m.Run()
	}())
}

// New is a database with nothing in it.
func New(t testing.TB) *Database {
	t.Helper()
	if shared != nil {
		database := &Database{t, shared}
		database.Run(leftovers)
		return database
	}
	made, drop, err := Create(Service(t, "postgres"))
	check(t, err)
	t.Cleanup(drop)
	return &Database{t, made}
}

// Create makes a database, and says how to drop it.
func Create(server string) (*url.URL, func(), error) {
	at, err := url.Parse(server)
	if err != nil {
		return nil, nil, err
	}
	name := fmt.Sprintf("hapax_go_%d_%d", os.Getpid(), time.Now().UnixNano())
	if err := run(server, "CREATE DATABASE "+name); err != nil {
		return nil, nil, err
	}
	at.Path = "/" + name
	drop := func() {
		if err := run(server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			log.Println(err)
		}
	}
	if err = migrate(at.String()); err == nil {
		err = run(at.String(), tables)
	}
	if err != nil {
		drop()
	}
	return at, drop, err
}

// URL is where it is.
func (d *Database) URL() string { return d.url.String() }

// Address is the host and the port of its server.
func (d *Database) Address() string { return d.url.Host }

// By is where it is by another way.
func (d *Database) By(address string) string {
	by := *d.url
	by.Host = address
	return by.String()
}

// Run runs statements.
func (d *Database) Run(statements string) {
	d.t.Helper()
	check(d.t, run(d.URL(), statements))
}

// Number asks for a number.
func (d *Database) Number(query string) (number int) {
	d.t.Helper()
	check(d.t, connected(d.URL(), func(ctx context.Context, connection *pgx.Conn) error {
		return connection.QueryRow(ctx, query).Scan(&number)
	}))
	return number
}

// Effects is how often an effect happened.
func (d *Database) Effects(name string) int {
	d.t.Helper()
	return d.Number("SELECT count(*) FROM effects WHERE name = '" + name + "'")
}

// Service is the URL of a server. A test is skipped where there is none, and fails in CI.
func Service(t testing.TB, name string) string {
	t.Helper()
	found, err := Find(name)
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("there is no server for %s: %v", name, err)
	} else if err != nil {
		t.Skipf("NOT CHECKED: there is no server for %s: %v", name, err)
	}
	return found
}

// Find is the URL of a server.
func Find(name string) (string, error) {
	if at := os.Getenv("HAPAX_" + strings.ToUpper(name) + "_URL"); at != "" {
		return at, nil
	}
	folder, err := repository()
	if err != nil {
		return "", err
	}
	found, err := os.ReadFile(filepath.Join(folder, ".services", name+".url"))
	return strings.TrimSpace(string(found)), err
}

// repository is the folder that all of Hapax is in.
func repository() (string, error) {
	folder, err := os.Getwd()
	for ; err == nil && folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		if _, missing := os.Stat(filepath.Join(folder, "sdk", "vectors")); missing == nil {
			return folder, nil
		}
	}
	return "", errors.Join(errors.New("this is not in the repository"), err)
}

// migrate installs the schema with the program that was built last.
func migrate(at string) error {
	program := os.Getenv("HAPAX_PROGRAM")
	if program == "" {
		folder, err := repository()
		if err != nil {
			return err
		}
		program = filepath.Join(folder, "target", "debug", "hapax")
	}
	if said, err := exec.Command(program, "migrate", "--store", at).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

func run(at, statements string) error {
	return connected(at, func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, statements)
		return err
	})
}

func connected(at string, do func(context.Context, *pgx.Conn) error) error {
	ctx := context.Background()
	connection, err := pgx.Connect(ctx, at)
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	return do(ctx, connection)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
