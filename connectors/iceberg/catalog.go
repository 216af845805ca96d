package iceberg

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

// Caller asks the library of Iceberg metadata. An error is one of reaching it; what it says of the request is in the answer.
type Caller func(ctx context.Context, req meta.Request) (meta.Answer, error)

// table is a table in a catalog.
type table struct {
	catalog meta.Catalog
	name    string
	branch  string
	call    Caller
}

func newTable(s connectors.Settings) (*table, error) {
	t := &table{name: s.String("table"), branch: s.String("branch"), call: Call}
	if space, name, ok := strings.Cut(t.name, "."); !ok || space == "" || strings.HasSuffix(name, ".") || name == "" {
		return nil, errs.New(errs.Usage, "options", "connector 'iceberg': %q names no table: it needs a namespace and a name", t.name).WithHint("write table = 'analytics.trades'")
	}
	var err error
	t.catalog, err = catalogOf(s)
	return t, err
}

// catalogOf reads the options that say which catalog it is.
func catalogOf(s connectors.Settings) (meta.Catalog, error) {
	c := meta.Catalog{Type: s.String("catalog_type"), Name: s.String("catalog_name"), Properties: map[string]string{}}
	where := s.String("catalog")
	scheme, rest, _ := strings.Cut(where, ":")
	kind := "hadoop"
	switch scheme {
	case "sqlite", "sqlite3", "postgres", "postgresql", "mysql":
		kind = "sql"
	case "http", "https":
		kind = "rest"
	case "glue":
		kind = "glue"
	}
	if c.Type == "" {
		c.Type = kind
	}
	switch c.Type {
	case "hadoop":
		c.Properties["warehouse"] = addressOf(where)
	case "glue":
		if rest = strings.TrimPrefix(rest, "//"); rest != "" {
			c.Properties["glue.id"] = rest
		}
	default:
		c.Properties["uri"] = where
	}
	if strings.HasPrefix(scheme, "sqlite") && c.Type == "sql" {
		c.Properties["warehouse"] = addressOf(filepath.Dir(sqlitePath(rest)))
	}
	for _, p := range s.List("catalog_properties") {
		key, value, ok := strings.Cut(p, "=")
		if !ok || key == "" {
			return c, errs.New(errs.Usage, "options", "connector 'iceberg': the option %q holds something that is not key=value", "catalog_properties")
		}
		c.Properties[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	for _, name := range []string{"warehouse", "token", "credential"} {
		if s.Has(name) {
			c.Properties[name] = s.String(name)
		}
	}
	if s.Has("warehouse") && c.Type == "sql" {
		c.Properties["warehouse"] = addressOf(s.String("warehouse"))
	}
	return c, nil
}

// addressOf is a folder as metadata name it: paths in them are read by other programs, which work elsewhere.
func addressOf(folder string) string {
	if strings.Contains(folder, ":/") {
		return folder
	}
	if absolute, err := filepath.Abs(folder); err == nil {
		return "file://" + absolute
	}
	return folder
}

// sqlitePath is the file that the address of a database of SQLite names behind its scheme: ///file is within the working folder, ////file is not.
func sqlitePath(rest string) string {
	path, _, _ := strings.Cut(rest, "?")
	if after, ok := strings.CutPrefix(path, "///"); ok {
		return after
	}
	return strings.TrimPrefix(path, "//")
}

// makeFolder makes the folder of a catalog that is a file of SQLite, which makes the file but not where it lies.
func makeFolder(catalog string) error {
	scheme, rest, _ := strings.Cut(catalog, ":")
	if !strings.HasPrefix(scheme, "sqlite") {
		return nil
	}
	return os.MkdirAll(filepath.Dir(sqlitePath(rest)), 0o755)
}

// refOf reads the options that say which state of the table is read.
func (t *table) refOf(s connectors.Settings) (meta.Ref, error) {
	ref := meta.Ref{Tag: s.String("tag"), Snapshot: s.Int("snapshot")}
	if ref.Tag != "" && ref.Snapshot != 0 || (ref.Tag != "" || ref.Snapshot != 0) && s.Has("as_of") {
		return ref, errs.New(errs.Usage, "options", "connector 'iceberg': of snapshot, tag and as_of each says which snapshot to read").WithHint("leave two of them out")
	}
	if ref.Tag != "" || ref.Snapshot != 0 {
		return ref, nil
	}
	ref.Branch = t.branch
	if stamp := s.String("as_of"); stamp != "" {
		v, err := types.ParseValue(stamp, types.TsTZ)
		if err != nil {
			return ref, errs.New(errs.Usage, "options", "connector 'iceberg': %q is not right for the option %q: it is no time", stamp, "as_of").
				WithHint("a time is written YYYY-MM-DD HH:MM:SS, with +HH:MM behind it when it is not UTC")
		}
		ref.AsOf = time.UnixMicro(v.(int64)).UnixMilli()
	}
	return ref, nil
}

// ask sends a request about the table.
func (t *table) ask(ctx context.Context, req meta.Request) (meta.Answer, error) {
	req.Catalog, req.Table = t.catalog, t.name
	a, err := t.call(ctx, req)
	if err != nil {
		if ctx.Err() != nil {
			return a, ctx.Err()
		}
		return a, errs.Because(err, errs.Source, req.Op, "", "the Iceberg table %q", t.name)
	}
	return a, t.failed(req.Op, a)
}

// kinds are those of the library's errors.
var kinds = map[string]errs.Kind{"schema": errs.Schema, "marker": errs.ExactlyOnce, "usage": errs.Usage, "canceled": errs.Cancelled}

// failed is the error that an answer tells.
func (t *table) failed(op string, a meta.Answer) error {
	if a.Error == "" {
		return nil
	}
	kind, ok := kinds[a.Kind]
	if !ok {
		kind = errs.Source
	}
	e := errs.New(kind, op, "the Iceberg table %q: %s", t.name, secretInURL.ReplaceAllString(a.Error, "$1***@")).WithHint("%s", a.Hint)
	if a.Transient {
		e = e.AsTransient()
	}
	e.Err = refusal(a.Kind)
	return e
}

// secretInURL is a password in the address of a database, which a driver's message may repeat.
var secretInURL = regexp.MustCompile(`(://[^\s:/@']*:)[^\s']*@`)

// refusal is the library's kind of an error, below it, by which callers tell what they can do about it.
type refusal string

func (r refusal) Error() string { return "refused: " + string(r) }

// locate finds a file by the address that metadata give.
func locate(path string) (objstore.Store, string, error) {
	if rest, ok := strings.CutPrefix(path, "file:"); ok { // file:/a, file:///a, file://localhost/a; what follows is no URL to decode
		if host, below, ok := strings.Cut(strings.TrimPrefix(rest, "//"), "/"); ok && strings.HasPrefix(rest, "//") && host != "" {
			rest = below
		}
		path = "/" + strings.TrimLeft(rest, "/")
	}
	return objstore.For(strings.Replace(path, "s3n://", "s3://", 1))
}

// kindOf is the kind of the library's error; "" for others.
func kindOf(err error) string {
	var r refusal
	errors.As(err, &r)
	return string(r)
}
