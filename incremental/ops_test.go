package incremental_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/incremental/optest"
)

// TestStateTablesAreThoseOfTheRegistry ties the tables that operators declare to plan.Ops, which EXPLAIN and the docs print.
func TestStateTablesAreThoseOfTheRegistry(t *testing.T) {
	ddl := `CREATE STREAM t (k TEXT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1 second');
		CREATE STREAM latest (k TEXT, v BIGINT, PRIMARY KEY (k)); CREATE TABLE a (k BIGINT, v BIGINT); CREATE TABLE b (k BIGINT, v BIGINT)`
	for _, op := range plan.Ops {
		if !op.Incremental.Yes {
			if op.Incremental.Why == "" {
				t.Errorf("%s has no incremental form and does not say why", op.Name)
			}
			continue
		}
		t.Run(op.Name, func(t *testing.T) {
			run, err := optest.Build(t, ddl, op.SQL)
			if err != nil {
				t.Fatalf("the example of the registry, %s: %v", op.SQL, err)
			}
			var declared []string
			for _, s := range op.State {
				declared = append(declared, s.Name)
			}
			s, err := run.Graph().Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range run.Graph().Operators() {
				if o.Name != op.Name {
					continue
				}
				for _, saved := range s.Operators {
					for _, p := range saved.Parts {
						if saved.Path == o.Path && !slices.ContainsFunc(declared, func(d string) bool { return strings.HasPrefix(p.Table, d) }) {
							t.Errorf("%s keeps a state table %s that core/plan/ops.go does not list", op.Name, p.Table)
						}
					}
				}
			}
		})
	}
}
