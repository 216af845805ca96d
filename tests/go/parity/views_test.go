package parity

import (
	"context"
	"errors"
	"fmt"
	"strings"

	riverbed "github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/tests/go/sqltest"
)

// runViews replays the statements of a file once for each of its queries, with the query as a materialized view, and
// compares the view with the query after every statement.
func runViews(f *sqltest.File) (problems []string, ran bool) {
	if len(f.Relations) > 0 {
		return nil, false
	}
	changes := false
	for _, it := range f.Items {
		changes = changes || it.Stmt != nil
	}
	if !changes {
		return nil, false
	}
	for i, it := range f.Items {
		if it.Query == nil || it.Query.Changelog || !strings.HasPrefix(strings.ToUpper(strings.TrimLeft(it.Query.SQL, "( ")), "SELECT") && !strings.HasPrefix(strings.ToUpper(it.Query.SQL), "WITH") {
			continue
		}
		ran = true
		if err := viewOf(f, i); err != nil {
			problems = append(problems, at(f, it.Line, "%v", err))
		}
	}
	return problems, ran
}

func viewOf(f *sqltest.File, target int) error {
	s, err := riverbed.Open(map[string]string{"parallelism": "2", "timezone": "UTC", "strict_retractions": "true"})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	query := f.Items[target].Query.SQL
	standing, inside := false, false
	for i, it := range f.Items {
		if it.Stmt != nil {
			msg := statement(s, it.Stmt)
			if msg != "" && standing { // a view stands in the way of DROP
				if _, err := s.Query(ctx, "DROP MATERIALIZED VIEW the_view", nil); err != nil {
					return err
				}
				standing = false
				msg = statement(s, it.Stmt)
			}
			if msg != "" {
				return fmt.Errorf("line %d: %s", it.Line, msg)
			}
			switch word := strings.ToUpper(strings.Trim(strings.Fields(it.Stmt.SQL)[0], ";")); word {
			case "BEGIN", "START":
				inside = true
			case "COMMIT", "ROLLBACK", "ABORT", "END":
				inside = false
			}
		}
		if inside || it.Stmt == nil && i != target {
			continue
		}
		if !standing {
			if _, err := s.Query(ctx, "CREATE MATERIALIZED VIEW the_view AS "+query, nil); err != nil {
				if i == target {
					return err
				}
				continue
			}
			standing = true
		}
		want, errBatch := run(s, query)
		got, errView := run(s, "SELECT * FROM the_view")
		if errBatch != nil && errView != nil {
			return nil
		}
		if errBatch != nil || errView != nil {
			return fmt.Errorf("line %d: one of the query and the view fails: %w", it.Line, errors.Join(errBatch, errView))
		}
		if d := sqltest.BagOf(got).Diff(sqltest.BagOf(want)); d != "" {
			return fmt.Errorf("behind line %d the view differs from its query:\n%s", it.Line, d)
		}
	}
	return nil
}
