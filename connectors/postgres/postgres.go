// Package postgres reads tables of PostgreSQL, as they stand or as they change, and writes rows to them.
//
// Invariant: what a position says was read is what the server's log holds before it, and what a marker says was committed was committed in
// the transaction that wrote the marker. Neither is ever concluded from an answer that did not come.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

// connection are the options of sources and sinks by which the server is reached.
var connection = connectors.Options{
	{Name: "url", Type: connectors.String, Secret: true, Doc: "Where the database is: postgres://user@host:port/database?sslmode=…, instead of the options host to sslrootcert. What it leaves out is taken from PGHOST, PGPORT, PGDATABASE, PGUSER and the other variables of libpq.", Example: "postgres://app@db:5432/shop"},
	{Name: "host", Type: connectors.String, Doc: "Host, or folder of the server's socket. Left out: PGHOST, then this machine.", Example: "db.example.org"},
	{Name: "port", Type: connectors.Int, Doc: "Port. Left out: PGPORT, then 5432.", Example: "5432"},
	{Name: "database", Type: connectors.String, Doc: "Database. Left out: PGDATABASE, then the name of the user.", Example: "shop"},
	{Name: "user", Type: connectors.String, Doc: "User. Left out: PGUSER, then the name of the system's user.", Example: "app"},
	{Name: "password", Type: connectors.String, Secret: true, Doc: "Password; write a reference to an environment variable. Left out: PGPASSWORD, then the file of PGPASSFILE.", Example: "${SHOP_PASSWORD}"},
	{Name: "sslmode", Type: connectors.Enum, Values: []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}, Doc: "Whether the connection is encrypted, and how much of the server's certificate is checked. Left out: PGSSLMODE, then prefer."},
	{Name: "sslrootcert", Type: connectors.String, Doc: "File with the certificates that we trust, in PEM. Left out: PGSSLROOTCERT, then the system's.", Example: "/etc/ssl/pg-ca.pem"},
}

// connectTimeout is how long one attempt to connect may take.
const connectTimeout = 10 * time.Second

// session are the settings of the server on which our texts of values depend.
var session = map[string]string{
	"application_name": "riverbed", "client_encoding": "UTF8", "standard_conforming_strings": "on",
	"synchronize_seqscans": "off", "TimeZone": "UTC", "DateStyle": "ISO, YMD", "IntervalStyle": "postgres", "extra_float_digits": "3", "bytea_output": "hex",
}

// database is where a connector connects to.
type database struct {
	conf  *pgconn.Config
	clock clock.Clock
}

func newDatabase(s connectors.Settings, c clock.Clock) (*database, error) {
	var text strings.Builder
	for _, o := range []struct{ option, word string }{
		{"host", "host"}, {"database", "dbname"}, {"user", "user"}, {"sslmode", "sslmode"}, {"sslrootcert", "sslrootcert"}, {"port", "port"},
	} {
		if !s.Has(o.option) {
			continue
		}
		if s.Has("url") {
			return nil, errs.New(errs.Usage, "options", "connector 'postgres': url and %s exclude each other", o.option).WithHint("write all of it into the url, or leave the url out")
		}
		value := s.String(o.option)
		if o.option == "port" {
			value = strconv.FormatInt(s.Int("port"), 10)
		}
		fmt.Fprintf(&text, "%s='%s' ", o.word, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value))
	}
	where := text.String()
	if s.Has("url") {
		if where = s.String("url"); !strings.HasPrefix(where, "postgres://") && !strings.HasPrefix(where, "postgresql://") {
			return nil, errs.New(errs.Usage, "options", "connector 'postgres': the option url does not begin with postgres://")
		}
	}
	conf, err := pgconn.ParseConfig(where)
	if err != nil {
		// The cause quotes what it could not read, and so perhaps a password.
		return nil, errs.New(errs.Usage, "options", "connector 'postgres': the options of the connection, or variables of the environment that begin with PG, are not right").
			WithHint("a url is postgres://user@host:port/database, where characters other than letters and digits are written as %%40 and so on; files of certificates must be there")
	}
	if s.Has("password") {
		conf.Password = s.String("password")
	}
	if conf.ConnectTimeout == 0 {
		conf.ConnectTimeout = connectTimeout
	}
	conf.DialFunc = dial
	for name, value := range session {
		conf.RuntimeParams[name] = value
	}
	return &database{conf, connectors.OpenRequest{Clock: c}.Time()}, nil
}

// String names the database for messages; it has no password.
func (d *database) String() string {
	return net.JoinHostPort(d.conf.Host, strconv.Itoa(int(d.conf.Port))) + "/" + d.conf.Database
}

// once connects, at the first attempt or not at all.
func (d *database) once(ctx context.Context) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, d.conf)
	if err != nil {
		return nil, err
	}
	// AIDEV-NOTE: what is answered as committed must survive a crash of the server, or a marker would fall behind what our manifest says.
	if err := exec(ctx, conn, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"); err != nil {
		hangUp(conn)
		return nil, err
	}
	return conn, nil
}

// connect connects, with some patience.
func (d *database) connect(ctx context.Context) (conn *pgconn.PgConn, err error) {
	err = d.retry(ctx, openAttempts, "connect", "the database %s cannot be reached", func(ctx context.Context, _ int) error {
		conn, err = d.once(ctx)
		return err
	})
	return conn, err
}

// ask connects, asks and hangs up.
func ask[T any](ctx context.Context, d *database, op, doing string, question func(ctx context.Context, conn *pgconn.PgConn) (T, error)) (answer T, err error) {
	err = d.retry(ctx, openAttempts, op, doing, func(ctx context.Context, _ int) error {
		conn, err := d.once(ctx)
		if err != nil {
			return err
		}
		defer hangUp(conn)
		answer, err = question(ctx, conn)
		return err
	})
	return answer, err
}

// hangUp ends a connection without waiting for a server that is silent.
func hangUp(conn *pgconn.PgConn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// How often something is tried. A commit that the manifest holds has to come to pass, so it outlasts a server that recovers from a crash.
const (
	openAttempts   = 5
	commitAttempts = 9
	firstWait      = 200 * time.Millisecond
	longestWait    = 8 * time.Second
)

// retry does something until it succeeds, fails for good, or has failed attempts times and the run has no patience left; n counts from 0. doing
// says what did not work; "%s" in it is the database.
func (d *database) retry(ctx context.Context, attempts int, op, doing string, try func(ctx context.Context, n int) error) error {
	again := clock.Retry{Clock: d.clock, Attempts: attempts, First: firstWait, Longest: longestWait}
	defer again.Done()
	for n := 0; ; n++ {
		err := try(ctx, n)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return errs.New(errs.Cancelled, op, "%s: cancelled: %w", d.said(doing), ctx.Err())
		}
		e := d.explain(op, doing, err)
		if !e.Transient || !again.Again(ctx, e) && ctx.Err() == nil {
			return e
		}
	}
}

func (d *database) said(doing string) string { return strings.ReplaceAll(doing, "%s", d.String()) }

// explain says what the user can do about an error, and whether trying again may help.
func (d *database) explain(op, doing string, err error) *errs.Error {
	if e := (*errs.Error)(nil); errors.As(err, &e) { // ours
		return e
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return errs.New(errs.Source, op, "%s: %w", d.said(doing), err).AsTransient().
			WithHint("check that the server runs there and that host, port and sslmode, or the variables PGHOST and so on, are right")
	}
	said := pg.Message
	if pg.Detail != "" {
		said += " (" + pg.Detail + ")"
	}
	if strings.HasPrefix(pg.Where, "COPY") { // it names the column
		said += ", in " + pg.Where
	}
	e := func(kind errs.Kind) *errs.Error {
		e := errs.New(kind, op, "%s: %s [%s]", d.said(doing), said, pg.Code)
		e.Err = err
		return e
	}
	switch {
	case pg.Code == "28P01", pg.Code[:2] == "28":
		return e(errs.Source).WithHint("check user and password, and the server's pg_hba.conf")
	case pg.Code == "3D000":
		return e(errs.Source).WithHint("check the name of the database")
	case pg.Code == "42501" && strings.Contains(pg.Message, "replication"):
		return e(errs.Source).WithHint("ALTER ROLE %s REPLICATION", quote(d.conf.User))
	case pg.Code == "42501":
		return e(errs.Source).WithHint("the user %s needs that right (GRANT)", d.conf.User)
	case pg.Code == "55P03":
		return e(errs.Source).AsTransient().WithHint("another session holds a lock on it: look into pg_locks and pg_stat_activity")
	case pg.Code[:2] == "08", pg.Code[:2] == "53", pg.Code[:3] == "57P", pg.Code[:2] == "40", pg.Code == "58030":
		return e(errs.Source).AsTransient()
	case pg.Code[:2] == "22", pg.Code[:2] == "23":
		return e(errs.Data)
	}
	return e(errs.Source)
}

// exec runs statements without arguments.
func exec(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	return conn.Exec(ctx, sql).Close()
}

// query runs a statement and returns its rows as text; nil is NULL. Arguments are text.
func query(ctx context.Context, conn *pgconn.PgConn, sql string, args ...string) ([][][]byte, pgconn.CommandTag, error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	res := conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	return res.Rows, res.CommandTag, res.Err
}
