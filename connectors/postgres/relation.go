package postgres

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// relation is a table as it stands when it is scanned.
type relation struct {
	db     *database
	table  *table
	fields []types.Field
	at     []int // places of the fields among the table's columns
}

func openRelation(ctx context.Context, req connectors.OpenRequest) (flow.Relation, error) {
	db, t, err := openTable(ctx, req)
	if err != nil {
		return nil, err
	}
	r := &relation{db: db, table: t}
	if r.fields, r.at, err = t.choose(req.Schema); err != nil {
		return nil, err
	}
	if _, err := newColumnReader(r.fields); err != nil {
		return nil, err
	}
	return r, nil
}

// openTable finds the database and the table that a source is opened with.
func openTable(ctx context.Context, req connectors.OpenRequest) (*database, *table, error) {
	name, err := parseTable(req.Settings.String("table"))
	if err != nil {
		return nil, nil, err
	}
	db, err := newDatabase(req.Settings, req.Clock)
	if err != nil {
		return nil, nil, err
	}
	t, err := ask(ctx, db, "open", "the table "+name.String()+" of %s cannot be read", func(ctx context.Context, conn *pgconn.PgConn) (*table, error) {
		t, err := lookUp(ctx, conn, name)
		if err != nil || t != nil {
			return t, err
		}
		e := errs.New(errs.Source, "open", "there is no table %s in %s", name, db)
		rows, _, err := query(ctx, conn, "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')")
		if err != nil {
			return nil, err
		}
		var all []string
		for _, r := range rows {
			if name.schema == "" {
				all = append(all, string(r[1]))
			}
			all = append(all, string(r[0])+"."+string(r[1]))
		}
		if hint := errs.DidYouMean(name.String(), all); hint != "" {
			return nil, e.WithHint("%s", hint)
		}
		return nil, e.WithHint("check the name, and the database")
	})
	return db, t, err
}

func (r *relation) Fields() []types.Field { return r.fields }

// Stats has what the server estimates.
func (r *relation) Stats() flow.Stats { return flow.Stats{Rows: max(r.table.rows, -1)} }

// Scan begins one statement, and so sees one moment of the table. Its rows are decoded by all workers.
func (r *relation) Scan(ctx context.Context, req flow.ScanRequest) (flow.Scan, error) {
	at, fields := make([]int, len(req.Columns)), make([]types.Field, len(req.Columns))
	for i, c := range req.Columns {
		at[i], fields[i] = r.at[c], r.fields[c]
	}
	from := r.table.sql() + r.where(req.Filters)
	if req.Limit > 0 && len(req.Filters) == 0 && req.Narrow == nil {
		from += " LIMIT " + strconv.FormatInt(req.Limit, 10)
	}
	conn, err := r.db.connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &scan{r: r, fields: fields, conn: conn, size: req.BatchRows}
	if s.size <= 0 {
		s.size = 8 << 10
	}
	if s.copy, err = startCopy(ctx, conn, r.table.columnList(at), from); err != nil {
		hangUp(conn)
		return nil, s.failed(err)
	}
	return s, nil
}

// where gives the conditions that the server can judge exactly as we do.
func (r *relation) where(filters []flow.Predicate) string {
	var out []string
	for _, f := range filters {
		c := r.table.columns[r.at[f.Column]]
		if f.Rising != nil || !sqlType(c).Equal(r.fields[f.Column].Type) {
			continue
		}
		name := quote(c.name)
		switch f.Op {
		case flow.CmpIsNull:
			out = append(out, name+" IS NULL")
			continue
		case flow.CmpIsNotNull:
			out = append(out, name+" IS NOT NULL")
			continue
		}
		values := make([]string, 0, len(f.Values))
		whole := c.oid == oidInt2 || c.oid == oidInt4 || c.oid == oidInt8
		for _, v := range f.Values {
			switch v := v.(type) {
			case int64:
				if whole {
					values = append(values, strconv.FormatInt(v, 10))
				}
			case string: // the order of texts is the database's own, their equality is not
				if (c.oid == oidText || c.oid == oidVarchar) && (f.Op == flow.CmpEq || f.Op == flow.CmpIn) && !strings.ContainsRune(v, 0) {
					values = append(values, literal(v))
				}
			}
		}
		if len(values) == 0 || len(values) != len(f.Values) {
			continue
		}
		if op := map[flow.CompareOp]string{flow.CmpEq: "=", flow.CmpNe: "<>", flow.CmpLt: "<", flow.CmpLe: "<=", flow.CmpGt: ">", flow.CmpGe: ">="}[f.Op]; op != "" && len(values) == 1 {
			out = append(out, name+" "+op+" "+values[0])
		} else if f.Op == flow.CmpIn {
			out = append(out, name+" IN ("+strings.Join(values, ", ")+")")
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(out, " AND ")
}

// scan is one read of a table.
type scan struct {
	r      *relation
	fields []types.Field
	conn   *pgconn.PgConn
	size   int

	mu     sync.Mutex
	copy   *rowCopy
	seq    int64
	broken error
}

// Next takes the lines of a batch off the connection and decodes them beside the other workers.
func (s *scan) Next(ctx context.Context, _ int) (*flow.Morsel, error) {
	rows, err := newColumnReader(s.fields)
	if err != nil {
		return nil, err
	}
	lines, seq, err := s.lines(ctx)
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	var values [][]byte
	var buf []byte
	for _, line := range lines {
		if values, buf, err = copyLine(line, buf, values); err == nil {
			err = rows.add(values[:len(s.fields)])
		}
		if err != nil {
			return nil, errs.New(errs.Data, "scan", "a row of the table %s: %w", s.r.table, err).WithHint("declare that column VARCHAR to read its text, or leave it out")
		}
	}
	return &flow.Morsel{Seq: seq, Batch: rows.take(false)}, nil
}

func (s *scan) lines(ctx context.Context) (lines [][]byte, seq int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, 0, s.broken
	}
	defer s.copy.during(ctx)()
	var all []byte
	var ends []int
	for len(ends) < s.size {
		line, more, err := s.copy.line()
		if err != nil {
			s.broken = s.failed(err)
			return nil, 0, s.broken
		}
		if !more {
			break
		}
		all = append(all, line...)
		ends = append(ends, len(all))
	}
	from := 0
	for _, to := range ends {
		lines = append(lines, all[from:to])
		from = to
	}
	s.seq++
	return lines, s.seq, nil
}

// failed tells of an error in the middle: what was read is not read again by itself.
func (s *scan) failed(err error) error {
	e := s.r.db.explain("scan", "the table "+s.r.table.String()+" of %s cannot be read", err)
	e.Transient = false
	return e
}

func (s *scan) Close() error {
	hangUp(s.conn)
	return nil
}
