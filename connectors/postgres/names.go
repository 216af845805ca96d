package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/riverbed/riverbed/core/errs"
)

// tableOption is what the option table says.
const tableOption = "The table, as it is stored: name, or schema.name; what has a point or capital letters may stand between double quotes."

// quote writes a name for SQL.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quoteAll(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quote(n)
	}
	return strings.Join(out, ", ")
}

// literal writes a text for SQL, where no argument can stand.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// tableName is the name of a table; the schema is "" where the server's search path decides.
type tableName struct{ schema, name string }

// parseTable reads name, schema.name, or either between double quotes.
func parseTable(text string) (tableName, error) {
	var parts []string
	rest := text
	for {
		var part string
		if strings.HasPrefix(rest, `"`) {
			var b strings.Builder
			i := 1
			for ; i < len(rest); i++ {
				if rest[i] != '"' {
					b.WriteByte(rest[i])
				} else if i+1 < len(rest) && rest[i+1] == '"' {
					b.WriteByte('"')
					i++
				} else {
					break
				}
			}
			if i >= len(rest) {
				return tableName{}, badTable(text)
			}
			part, rest = b.String(), rest[i+1:]
		} else {
			at := strings.IndexByte(rest, '.')
			if at < 0 {
				at = len(rest)
			}
			part, rest = rest[:at], rest[at:]
		}
		if part == "" {
			return tableName{}, badTable(text)
		}
		parts = append(parts, part)
		if rest == "" {
			break
		}
		if rest[0] != '.' {
			return tableName{}, badTable(text)
		}
		rest = rest[1:]
	}
	switch len(parts) {
	case 1:
		return tableName{name: parts[0]}, nil
	case 2:
		return tableName{parts[0], parts[1]}, nil
	}
	return tableName{}, badTable(text)
}

func badTable(text string) error {
	return errs.New(errs.Usage, "options", "connector 'postgres': %q is no name of a table", text).WithHint(`write name, schema.name, or "Schema"."Name"`)
}

func (t tableName) sql() string {
	if t.schema == "" {
		return quote(t.name)
	}
	return quote(t.schema) + "." + quote(t.name)
}

func (t tableName) String() string {
	if t.schema == "" {
		return t.name
	}
	return t.schema + "." + t.name
}

// column is a column of a table as the server describes it.
type column struct {
	name    string
	typ     uint32 // of the column
	oid     uint32 // of its values: a domain has those of its base
	mod     int32  // width and scale of a numeric; −1: none
	elem    uint32
	notNull bool
	// generated: the server computes it, and its log does not have it.
	generated bool
}

// table is a table as the server describes it.
type table struct {
	tableName
	oid      uint32
	columns  []column
	kind     byte     // pg_class.relkind: r, p, v, m, f
	identity byte     // pg_class.relreplident: d, n, f, i
	key      []string // columns of the key that tells rows apart, in its order; nil: none
	rows     int64    // as the server estimates; −1: it does not
}

// lookUp describes a table; nil when there is none.
func lookUp(ctx context.Context, conn *pgconn.PgConn, name tableName) (*table, error) {
	rows, _, err := query(ctx, conn, `SELECT c.oid, n.nspname, c.relname, c.relreplident, c.reltuples::bigint, c.relkind
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)`, name.sql())
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	r := rows[0]
	t := &table{tableName: tableName{string(r[1]), string(r[2])}, oid: uint32(number(r[0])), kind: r[5][0], identity: r[3][0], rows: number(r[4])}
	if !strings.ContainsRune("rpvmf", rune(t.kind)) {
		return nil, errs.New(errs.Schema, "open", "%s is not a table", t)
	}
	rows, _, err = query(ctx, conn, `SELECT a.attname, a.atttypid, a.atttypmod, coalesce(e.oid, 0), a.attnotnull, b.typtype, b.typbasetype, b.typtypmod, a.attgenerated
		FROM pg_attribute a JOIN pg_type b ON b.oid = a.atttypid LEFT JOIN pg_type e ON e.oid = b.typelem AND b.typcategory = 'A'
		WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, string(r[0]))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		c := column{name: string(r[0]), typ: uint32(number(r[1])), oid: uint32(number(r[1])), mod: int32(number(r[2])), elem: uint32(number(r[3])), notNull: string(r[4]) == "t", generated: len(r[8]) > 0}
		if string(r[5]) == "d" {
			c.oid, c.mod = uint32(number(r[6])), int32(number(r[7]))
		}
		t.columns = append(t.columns, c)
	}
	// The index by which the log tells rows apart: the primary key's, unless another was chosen.
	rows, _, err = query(ctx, conn, `SELECT a.attname FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k(att, at), pg_attribute a
		WHERE i.indrelid = $1::oid AND CASE WHEN $2 = 'i' THEN i.indisreplident ELSE i.indisprimary END AND k.at <= i.indnkeyatts AND a.attrelid = i.indrelid AND a.attnum = k.att ORDER BY k.at`, string(r[0]), string(t.identity))
	for _, r := range rows {
		t.key = append(t.key, string(r[0]))
	}
	return t, err
}

// unique reports whether rows are unique by exactly these columns, so that ON CONFLICT can name them.
func (t *table) unique(ctx context.Context, conn *pgconn.PgConn, key []string) (bool, error) {
	rows, _, err := query(ctx, conn, `SELECT a.attname, i.indexrelid FROM pg_index i, unnest(i.indkey[0:i.indnkeyatts - 1]) k(att), pg_attribute a
		WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
		AND a.attrelid = i.indrelid AND a.attnum = k.att`, t.sql())
	if err != nil {
		return false, err
	}
	want := map[string]bool{}
	for _, k := range key {
		want[k] = true
	}
	found := map[string]int{} // columns of the key by index; −1: another one is in it
	for _, r := range rows {
		index := string(r[1])
		if !want[string(r[0])] {
			found[index] = -len(rows)
		}
		found[index]++
	}
	for _, n := range found {
		if n == len(want) {
			return true, nil
		}
	}
	return false, nil
}

func (t *table) names() []string {
	out := make([]string, len(t.columns))
	for i, c := range t.columns {
		out[i] = c.name
	}
	return out
}

// number reads a number that the server wrote.
func number(text []byte) (n int64) {
	neg := false
	for _, c := range text {
		if c == '-' {
			neg = true
			continue
		}
		n = 10*n + int64(c-'0')
	}
	if neg {
		return -n
	}
	return n
}
