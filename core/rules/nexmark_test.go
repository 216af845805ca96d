package rules

import (
	"os"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// withRange adds range(n) to a catalog.
type withRange struct{ catalog }

func (c withRange) TableFunction(name string, args []types.Value, _ []types.Type, _ map[string]types.Value) (*plan.Source, error) {
	if name != "range" {
		return nil, nil
	}
	fields := []types.Field{{Name: "range", Type: types.Int64}}
	return &plan.Source{Name: "range", Fields: fields, Relation: &relation{fields: fields}}, nil
}

// TestNexmark optimizes the benchmark's queries over live streams. Those that need session windows or
// window functions are refused by name.
func TestNexmark(t *testing.T) {
	c := withRange{declare(t,
		"stream person(id BIGINT; name VARCHAR; emailAddress VARCHAR; creditCard VARCHAR; city VARCHAR; state VARCHAR; dateTime TIMESTAMP_MS; extra VARCHAR)",
		"stream auction(id BIGINT; itemName VARCHAR; description VARCHAR; initialBid BIGINT; reserve BIGINT; dateTime TIMESTAMP_MS; expires TIMESTAMP_MS; seller BIGINT; category BIGINT; extra VARCHAR)",
		"stream bid(auction BIGINT; bidder BIGINT; price BIGINT; channel VARCHAR; url VARCHAR; dateTime TIMESTAMP_MS; extra VARCHAR)")}
	text, err := os.ReadFile("../bind/testdata/nexmark.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		name, query, _ := strings.Cut(block, "\n")
		name, query = strings.TrimPrefix(name, "-- "), strings.TrimSuffix(query, ";")
		q, err := bind.New(c, bind.Options{SQL: query}).Query(parsed(t, query))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, mode := range both {
			out, _, err := Optimize(q, mode, Options{})
			switch {
			case err == nil:
				checkColumns(t, name, q, out)
			case !errs.Is(err, errs.Unsupported) || !strings.Contains(query, " over (") && !strings.Contains(strings.ToLower(query), "session("):
				t.Errorf("%s, %s: %v", name, mode, err)
			default:
				t.Logf("%s, %s: %v", name, mode, err)
			}
		}
	}
}
