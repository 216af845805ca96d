package service

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	_ "github.com/apache/iceberg-go/catalog/glue" // registers itself
	_ "github.com/apache/iceberg-go/catalog/hadoop"
	_ "github.com/apache/iceberg-go/catalog/rest"
	_ "github.com/apache/iceberg-go/catalog/sql"
	_ "github.com/jackc/pgx/v5/stdlib" // the drivers of SQL catalogs
	_ "modernc.org/sqlite"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// opened is a catalog with its connections. It is kept for the process: tables are looked up in it at each call.
type opened struct{ catalog.Catalog }

// catalogs are those that were opened, each behind a lock of its own: a service that does not answer holds up nobody else.
var catalogs sync.Map // text of the properties → *slot

type slot struct {
	sync.Mutex
	*opened
}

// open gives the catalog that a request names, the same for equal properties.
func open(ctx context.Context, c meta.Catalog) (*opened, error) {
	properties, err := propertiesOf(c)
	if err != nil {
		return nil, err
	}
	name := c.Name
	if name == "" {
		name = "default"
	}
	var key strings.Builder
	key.WriteString(name)
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		fmt.Fprintf(&key, " %s=%q", k, properties[k])
	}
	found, _ := catalogs.LoadOrStore(key.String(), &slot{})
	s := found.(*slot)
	s.Lock()
	defer s.Unlock()
	if s.opened != nil {
		return s.opened, nil
	}
	// Connections outlive the request that opens them, but opening does not.
	opening, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	cat, err := catalog.Load(opening, name, properties)
	if !stop() || err != nil {
		cancel()
		if err == nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("cannot open the %s catalog %s: %w", c.Type, name, err)
	}
	s.opened = &opened{cat}
	return s.opened, nil
}

// propertiesOf are a catalog's properties as iceberg-go wants them.
func propertiesOf(c meta.Catalog) (iceberg.Properties, error) {
	p := iceberg.Properties{}
	maps.Copy(p, c.Properties)
	kind := c.Type
	if kind == "file" {
		kind = "hadoop"
	}
	p["type"] = kind
	switch kind {
	case "sql":
		return sqlProperties(p)
	case "hadoop":
		warehouse := p["warehouse"]
		if warehouse == "" {
			return nil, faultf(kindUsage, "a hadoop catalog needs a warehouse").hint("give the folder that its namespaces are in")
		}
		if readOnly(kind, warehouse) {
			p["allow-unsafe-commits"] = "true" // nothing is committed, see prepare
		}
	case "rest":
		if p["uri"] == "" {
			return nil, faultf(kindUsage, "a rest catalog needs a uri").hint("give the address of the catalog service")
		}
	case "glue":
	default:
		return nil, faultf(kindUsage, "there is no Iceberg catalog of type %q", c.Type).hint("types are sql, rest, glue and hadoop")
	}
	return p, nil
}

// sqlProperties finds the driver by the uri, which may be written as other clients write it: sqlite:///relative.db, sqlite:////absolute.db,
// postgresql+psycopg2://user:password@host/database.
func sqlProperties(p iceberg.Properties) (iceberg.Properties, error) {
	uri := strings.TrimPrefix(p["uri"], "sql://")
	scheme, rest, _ := strings.Cut(uri, ":")
	scheme, _, _ = strings.Cut(scheme, "+")
	switch scheme {
	case "sqlite", "sqlite3":
		path := strings.TrimPrefix(rest, "///")
		if path == rest {
			path = strings.TrimPrefix(rest, "//")
		}
		return sqlite(p, path)
	case "file":
		return sqlite(p, strings.TrimPrefix(rest, "//"))
	case "postgres", "postgresql":
		p["uri"], p["sql.driver"], p["sql.dialect"] = "postgres:"+rest, "pgx", "postgres"
		return p, nil
	case "":
		return nil, faultf(kindUsage, "a sql catalog needs a uri").hint("write sqlite:///path/to/catalog.db or postgresql://host/database")
	}
	if rest == "" { // a path
		return sqlite(p, uri)
	}
	return nil, faultf(kindUsage, "no driver knows the sql catalog's %s:", scheme).hint("use sqlite: or postgresql:")
}

// sqlite makes writers wait for each other instead of failing, and a commit durable.
func sqlite(p iceberg.Properties, path string) (iceberg.Properties, error) {
	path, query, _ := strings.Cut(path, "?")
	if path == "" || strings.Contains(path, ":memory:") || strings.Contains(query, "mode=memory") {
		return nil, faultf(kindUsage, "a catalog in memory is seen by nobody else").hint("give the path of a file")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Dir(absolute)); err != nil {
		return nil, faultf(kindUsage, "there is no folder for the catalog %s: %v", path, err).hint("give the path of a catalog; a sink makes the folder of its own")
	}
	options := url.Values{"_pragma": {"busy_timeout(30000)", "synchronous(full)"}}
	p["uri"] = (&url.URL{Scheme: "file", Path: absolute, RawQuery: options.Encode()}).String()
	p["sql.driver"], p["sql.dialect"] = "sqlite", "sqlite"
	return p, nil
}
