// Package service answers the engine's questions about Iceberg tables: what a table is, which files a snapshot has, what snapshots changed, and it commits
// data files. It reads and writes metadata alone; the rows are the engine's.
//
// Invariant: a commit is one snapshot that holds the pipeline's marker, or it is nothing. Whatever answer got lost, the same request again finds the marker
// and changes nothing.
//
// Files: catalog.go (which catalog), storage.go (files and S3), schema.go, values.go and refs.go (Iceberg's words and ours), table.go (load, create, drop, evolve),
// files.go (what a snapshot holds), changes.go (what snapshots did), datafile.go (what a footer says of a file), marker.go and commit.go.
package service

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// operations are what a request may ask for.
var operations = map[string]func(context.Context, *call) (meta.Answer, error){
	"load":    load,
	"create":  create,
	"drop":    drop,
	"evolve":  evolve,
	"files":   files,
	"changes": changes,
	"marker":  marker,
	"begin":   begin,
	"commit":  commit,
}

// call is a request with what it names.
type call struct {
	meta.Request
	catalog *opened
	ident   []string // namespace …, name
}

// Call answers a request. It never panics, and secrets of the catalog are in no answer.
func Call(ctx context.Context, r meta.Request) (a meta.Answer) {
	// AIDEV-NOTE: iceberg-go panics on some files that are not as it expects; a panic that passed the exported function would end the host process.
	defer func() {
		if p := recover(); p != nil {
			a = refusal(r, fmt.Errorf("internal error: %v\n%s", p, firstFrames(debug.Stack())))
		}
	}()
	run, ok := operations[r.Op]
	if !ok {
		return refusal(r, faultf(kindUsage, "the library of Iceberg metadata knows no operation %q", r.Op).hint("use the library of the same version as riverbed"))
	}
	c, err := prepare(ctx, r)
	if err == nil {
		a, err = run(ctx, c)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return refusal(r, err)
	}
	return a
}

func prepare(ctx context.Context, r meta.Request) (*call, error) {
	ident := strings.Split(r.Table, ".")
	for _, part := range ident {
		if part == "" || len(ident) < 2 {
			return nil, faultf(kindUsage, "%q names no Iceberg table", r.Table).hint("write it as namespace.table")
		}
	}
	if readOnly(r.Catalog.Type, r.Catalog.Properties["warehouse"]) && !reads[r.Op] {
		return nil, faultf(kindUsage, "a hadoop catalog in an object store cannot commit safely").hint("use a sql, rest or glue catalog for tables that are written there")
	}
	cat, err := open(ctx, r.Catalog)
	if err != nil {
		return nil, err
	}
	return &call{Request: r, catalog: cat, ident: ident}, nil
}

// firstFrames keeps the frames nearest to a panic.
func firstFrames(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	return strings.Join(lines[:min(len(lines), 24)], "\n")
}
