package riverbed

import (
	"reflect"
	"testing"
)

func TestStatementsSplitsAtSemicolonsOfTheSQL(t *testing.T) {
	for script, want := range map[string][]string{
		"":                                      {},
		" ;; ":                                  {},
		"SELECT 1":                              {"SELECT 1"},
		"SELECT 1;":                             {"SELECT 1"},
		"SELECT ';' ;\n\nSELECT 2; SELECT 3":    {"SELECT ';'", "SELECT 2", "SELECT 3"},
		"SELECT 1 -- a; b\n; SELECT 2":          {"SELECT 1 -- a; b", "SELECT 2"},
		"SELECT 1 UNION ALL SELECT 2; SELECT 3": {"SELECT 1 UNION ALL SELECT 2", "SELECT 3"},
		"WITH a AS (SELECT 1) SELECT * FROM a; SELECT 3": {"WITH a AS (SELECT 1) SELECT * FROM a", "SELECT 3"},
	} {
		got, err := Statements(script)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Statements(%q) = %q, %v; want %q", script, got, err, want)
		}
	}
}
