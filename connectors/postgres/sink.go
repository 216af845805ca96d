package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Sink declares tables as sinks.
var Sink = connectors.Sink{
	Name: "postgres", Class: "Postgres", Summary: "Write rows to a table of PostgreSQL: add them, or keep the table equal to the query by key.",
	Updates: connectors.Keyed, ExactlyOnce: true, Held: true,
	Options: connection.With(
		connectors.Option{Name: "table", Type: connectors.String, Required: true, Doc: tableOption, Example: "public.totals"},
		connectors.Option{Name: "key", Type: connectors.List, Doc: "Columns that tell the rows of the query apart. With them a row replaces the one of its key and a row that goes is deleted; without, rows are only added.", Example: "customer, day"},
		connectors.Option{Name: "create", Type: connectors.Bool, Default: "true", Doc: "Create the table when it is missing, with the key as its primary key."},
		connectors.Option{Name: "marker_table", Type: connectors.String, Default: "riverbed_markers", Doc: "Table in which exactly-once sinks of this database note, in the transaction of the rows, which epoch they have. It is created when it is missing."},
		connectors.ChangelogOption,
	),
	Open: openSink,
}

// flushBytes is how many bytes of rows wait for Stage before they are written without it.
const flushBytes = 16 << 20

// stagedTable holds the changes of one transaction by key, beside a column that says which are deletions. It is the session's own and
// empty between transactions.
const (
	stagedTable   = "pg_temp.riverbed_changes"
	deletedColumn = "riverbed__deleted"
)

type writer struct {
	db        *database
	table     tableName
	markers   tableName
	pipeline  string
	fields    []types.Field
	key       []int // columns of the key; nil: rows are only added
	changelog bool

	conn  *pgconn.PgConn // nil: none
	fence string         // the number that Begin drew: of two writers of a pipeline the one with the newer may commit
	rows  changes        // written and not yet visible
}

func openSink(ctx context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
	s := req.Settings
	w := &writer{pipeline: req.Pipeline}
	var err error
	if w.table, err = parseTable(s.String("table")); err != nil {
		return nil, err
	}
	if w.markers, err = parseTable(s.String("marker_table")); err != nil {
		return nil, err
	}
	if w.key, err = connectors.SinkKey("the Postgres sink", req); err != nil {
		return nil, err
	}
	if w.key != nil {
		w.fields = req.Fields
	} else if w.fields, w.changelog, err = connectors.AppendFields("the Postgres sink without the option key", req); err != nil {
		if e := errs.As(err); e.Kind == errs.Unsupported {
			return nil, e.WithHint("name the columns that tell its rows apart (key = 'id'), use EMIT ON WATERMARK, or set changelog = true to write each change with its __weight")
		}
		return nil, err
	}
	w.rows = changes{fields: w.fields, key: w.key, changelog: w.changelog}
	for _, f := range w.fields {
		if _, err := columnType(f.Type); err != nil {
			return nil, errs.New(errs.Schema, "open sink", "column %q: %w", f.Name, err).WithHint("cast it in the query, to VARCHAR or JSON for instance")
		}
	}
	if w.db, err = newDatabase(s, req.Clock); err != nil {
		return nil, err
	}
	_, err = ask(ctx, w.db, "open sink", "the table "+w.table.String()+" of %s cannot be written", func(ctx context.Context, conn *pgconn.PgConn) (struct{}, error) {
		return struct{}{}, w.prepare(ctx, conn, s.Bool("create"))
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (w *writer) names() []string {
	out := make([]string, len(w.fields))
	for i, f := range w.fields {
		out[i] = f.Name
	}
	return out
}

func (w *writer) keyNames() []string { return w.namesOf(w.key) }

func (w *writer) namesOf(columns []int) []string {
	out := make([]string, len(columns))
	for i, at := range columns {
		out[i] = w.fields[at].Name
	}
	return out
}

// prepare makes the table, or looks that it has what we write.
func (w *writer) prepare(ctx context.Context, conn *pgconn.PgConn, create bool) error {
	t, err := lookUp(ctx, conn, w.table)
	if err != nil {
		return err
	}
	if t == nil {
		if !create {
			return errs.New(errs.Source, "open sink", "there is no table %s in %s", w.table, w.db).WithHint("create it, or set create = true")
		}
		if err := w.createTable(ctx, conn); err != nil {
			return err
		}
		if t, err = lookUp(ctx, conn, w.table); err != nil || t == nil {
			return err
		}
	}
	w.table = t.tableName // with its schema: a marker is of one table, whatever the search path says
	have := t.names()
	for _, name := range w.names() {
		if slices.Contains(have, name) {
			continue
		}
		e := errs.New(errs.Schema, "open sink", "the table %s has no column %q; it has %s", w.table, name, strings.Join(have, ", "))
		if hint := errs.DidYouMean(name, have); hint != "" {
			return e.WithHint("%s", hint)
		}
		return e.WithHint("name the columns of the query as the table's are, or add it to the table")
	}
	if w.key == nil {
		return nil
	}
	ok, err := t.unique(ctx, conn, w.keyNames())
	if err == nil && !ok {
		return errs.New(errs.Schema, "open sink", "no primary key or unique index of the table %s is of exactly the columns %s", w.table, strings.Join(w.keyNames(), ", ")).
			WithHint("create it: CREATE UNIQUE INDEX ON %s (%s)", w.table.sql(), quoteAll(w.keyNames()))
	}
	return err
}

func (w *writer) createTable(ctx context.Context, conn *pgconn.PgConn) error {
	var parts []string
	for i, f := range w.fields {
		t, err := columnType(f.Type)
		if err != nil {
			return err
		}
		if slices.Contains(w.key, i) && t == "json" {
			return errs.New(errs.Schema, "open sink", "column %q of the key is %s, whose values PostgreSQL does not compare", f.Name, f.Type).WithHint("cast it to VARCHAR in the query")
		}
		parts = append(parts, quote(f.Name)+" "+t)
	}
	if w.key != nil {
		parts = append(parts, "PRIMARY KEY ("+quoteAll(w.keyNames())+")")
	}
	return createOnce(ctx, conn, "CREATE TABLE IF NOT EXISTS "+w.table.sql()+" ("+strings.Join(parts, ", ")+")")
}

// createOnce runs a CREATE … IF NOT EXISTS, which fails when another session creates the same at this moment.
func createOnce(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	err := exec(ctx, conn, sql)
	if code := sqlState(err); code == "23505" || code == "42P07" || code == "42710" {
		return exec(ctx, conn, sql)
	}
	return err
}

// session returns the connection, a new one when the last was lost.
func (w *writer) session(ctx context.Context) (*pgconn.PgConn, error) {
	if w.conn != nil && !w.conn.IsClosed() {
		return w.conn, nil
	}
	conn, err := w.db.once(ctx)
	if err != nil {
		return nil, err
	}
	if w.key != nil {
		err = exec(ctx, conn, fmt.Sprintf("CREATE TEMP TABLE riverbed_changes ON COMMIT DELETE ROWS AS SELECT %s, false AS %s FROM %s WITH NO DATA",
			quoteAll(w.names()), deletedColumn, w.table.sql()))
		if err != nil {
			hangUp(conn)
			return nil, err
		}
	}
	w.conn = conn
	return conn, nil
}

// drop forgets a connection on which something failed: what it has left undone is rolled back.
func (w *writer) drop() {
	hangUp(w.conn)
	w.conn = nil
}

// Write encodes the rows.
func (w *writer) Write(ctx context.Context, d flow.Delta) error {
	if err := w.rows.add(d); err != nil {
		return err
	}
	if w.rows.size < flushBytes {
		return nil
	}
	return w.flush(ctx)
}

// Stage makes what was written visible, at least once.
func (w *writer) Stage(ctx context.Context, _ flow.Epoch) (connectors.Committable, error) {
	return nil, w.flush(ctx)
}

// flush writes in one transaction. When its end is not known it is run again: rows that are only added may then come twice.
func (w *writer) flush(ctx context.Context) error {
	if w.rows.empty() {
		return nil
	}
	err := w.transaction(ctx, "write", func(ctx context.Context, conn *pgconn.PgConn, _ int) (bool, error) {
		return true, w.apply(ctx, conn, &w.rows)
	})
	if err == nil {
		w.rows.clear()
	}
	return err
}

// transaction runs work in a transaction until its end is known. work says whether there is something to commit.
func (w *writer) transaction(ctx context.Context, op string, work func(ctx context.Context, conn *pgconn.PgConn, n int) (bool, error)) error {
	return w.db.retry(ctx, commitAttempts, op, "rows for the table "+w.table.String()+" of %s cannot be written", func(ctx context.Context, n int) (err error) {
		conn, err := w.session(ctx)
		if err != nil {
			return err
		}
		defer func() {
			if err != nil {
				w.drop()
			}
		}()
		if err := exec(ctx, conn, "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '30s'"); err != nil {
			return err
		}
		commit, err := work(ctx, conn, n)
		if err != nil {
			return err
		}
		if !commit {
			return exec(ctx, conn, "ROLLBACK")
		}
		_, tag, err := query(ctx, conn, "COMMIT")
		if err == nil && tag.String() != "COMMIT" {
			err = errs.New(errs.Source, op, "the transaction for the table %s was rolled back by the server", w.table).AsTransient()
		}
		return err
	})
}

// apply writes changes, in the transaction that is open.
func (w *writer) apply(ctx context.Context, conn *pgconn.PgConn, c *changes) error {
	if c.empty() {
		return nil
	}
	cols := quoteAll(w.names())
	if w.key == nil {
		_, err := conn.CopyFrom(ctx, c.reader(), fmt.Sprintf("COPY %s (%s) FROM STDIN", w.table.sql(), cols))
		return err
	}
	if _, err := conn.CopyFrom(ctx, c.reader(), fmt.Sprintf("COPY %s (%s, %s) FROM STDIN", stagedTable, cols, deletedColumn)); err != nil {
		return err
	}
	if c.deletes > 0 {
		var same []string
		for _, k := range w.keyNames() {
			same = append(same, "t."+quote(k)+" = c."+quote(k))
		}
		if err := exec(ctx, conn, fmt.Sprintf("DELETE FROM %s t USING %s c WHERE c.%s AND %s", w.table.sql(), stagedTable, deletedColumn, strings.Join(same, " AND "))); err != nil {
			return err
		}
	}
	if c.deletes == len(c.lines) {
		return nil
	}
	var set []string
	for i, f := range w.fields {
		if !slices.Contains(w.key, i) {
			set = append(set, quote(f.Name)+" = EXCLUDED."+quote(f.Name))
		}
	}
	do := "NOTHING"
	if len(set) > 0 {
		do = "UPDATE SET " + strings.Join(set, ", ")
	}
	return exec(ctx, conn, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s WHERE NOT %s ON CONFLICT (%s) DO %s",
		w.table.sql(), cols, cols, stagedTable, deletedColumn, quoteAll(w.keyNames()), do))
}

func (w *writer) Close() error {
	w.drop()
	return nil
}

// changes are rows as lines of COPY; with a key one line a key, which is its last row or says that it is gone.
type changes struct {
	fields    []types.Field
	key       []int
	changelog bool

	lines   []line
	at      map[string]int // line of a key
	deletes int
	size    int
	delta   int // which delta is being added
}

type line struct {
	text    []byte
	deleted bool
	delta   int // the one that it came with
}

func (c *changes) empty() bool { return len(c.lines) == 0 }

func (c *changes) clear() { c.lines, c.at, c.deletes, c.size = nil, nil, 0, 0 }

// reader gives the lines to COPY.
func (c *changes) reader() io.Reader {
	at, rest := 0, []byte(nil)
	return readerFunc(func(p []byte) (n int, err error) {
		for n < len(p) {
			if len(rest) == 0 {
				if at == len(c.lines) {
					if n == 0 {
						return 0, io.EOF
					}
					return n, nil
				}
				rest = c.lines[at].text
				at++
			}
			k := copy(p[n:], rest)
			n, rest = n+k, rest[k:]
		}
		return n, nil
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// add takes the rows of one delta, or of consolidated batches that are parts of one.
func (c *changes) add(deltas ...flow.Delta) error {
	c.delta++
	for _, d := range deltas {
		if d.Batch == nil || d.Rows() == 0 {
			continue
		}
		var err error
		if c.key == nil {
			err = c.addRows(d)
		} else {
			err = c.addKeys(d)
		}
		if err != nil {
			if e := errs.As(err); e.Kind != errs.Internal {
				return err
			}
			return errs.New(errs.Data, "write", "a row for PostgreSQL: %w", err)
		}
	}
	return nil
}

func (c *changes) addRows(d flow.Delta) error {
	cols := d.Columns()
	var repeats []int64
	var err error
	if c.changelog {
		cols = connectors.ChangeColumns(d)
	} else if repeats, err = connectors.Repeats("the Postgres sink without the option key", d); err != nil {
		return err
	}
	enc, err := newEncoder(c.fields, cols)
	if err != nil {
		return err
	}
	for row := range d.Rows() {
		text, err := enc.values(nil, row)
		if err != nil {
			return err
		}
		text = append(text, '\n')
		times := int64(1)
		if repeats != nil {
			times = repeats[row]
		}
		for range times {
			c.lines = append(c.lines, line{text: text})
			c.size += len(text)
		}
	}
	return nil
}

// addKeys takes what becomes of keys. Within a delta the row that comes says more than the one that goes.
func (c *changes) addKeys(d flow.Delta) error {
	enc, err := newEncoder(c.fields, d.Columns())
	if err != nil {
		return err
	}
	if c.at == nil {
		c.at = map[string]int{}
	}
	weights := d.Weights()
	var key []byte
	for row := range d.Rows() {
		key = key[:0]
		for _, at := range c.key {
			if enc.columns[at].IsNull(row) {
				return errs.New(errs.Data, "write", "a row is NULL in the column %q of the key", c.fields[at].Name).WithHint("leave such rows out (WHERE %s IS NOT NULL), or choose another key", quote(c.fields[at].Name))
			}
			if key, err = enc.value(key, at, row); err != nil {
				return err
			}
			key = append(key, '\t')
		}
		weight := int64(1)
		if weights != nil {
			weight = weights[row]
		}
		at, known := c.at[string(key)]
		ours := known && c.lines[at].delta == c.delta
		if weight == 0 || weight < 0 && ours {
			continue
		}
		l := line{deleted: weight < 0, delta: c.delta}
		if l.deleted {
			l.text, err = c.deletion(enc, row)
		} else {
			if weight > 1 || ours && !c.lines[at].deleted {
				return errs.New(errs.Data, "write", "the query has two rows with the key (%s)", bytes.ReplaceAll(bytes.TrimSuffix(key, []byte{'\t'}), []byte{'\t'}, []byte(", "))).
					WithHint("the option key must name columns that tell all rows of the query apart")
			}
			l.text, err = enc.values(nil, row)
			l.text = append(l.text, "\tf\n"...)
		}
		if err != nil {
			return err
		}
		if !known {
			at = len(c.lines)
			c.lines = append(c.lines, line{})
			c.at[string(key)] = at
		}
		if c.lines[at].deleted {
			c.deletes--
		}
		if l.deleted {
			c.deletes++
		}
		c.size += len(l.text) - len(c.lines[at].text)
		c.lines[at] = l
	}
	return nil
}

// deletion is the line of a key that is gone.
func (c *changes) deletion(enc *encoder, row int) (text []byte, err error) {
	for i := range c.fields {
		if i > 0 {
			text = append(text, '\t')
		}
		if !slices.Contains(c.key, i) {
			text = append(text, `\N`...)
		} else if text, err = enc.value(text, i, row); err != nil {
			return nil, err
		}
	}
	return append(text, "\tt\n"...), nil
}
