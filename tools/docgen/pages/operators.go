package pages

import (
	"fmt"
	"strings"

	"github.com/riverbed/riverbed/core/plan"
)

func operators() string {
	var b strings.Builder
	b.WriteString("| operator | | batch | incremental | for example |\n|---|---|---|---|---|\n")
	for _, o := range plan.Ops {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", o.Name, cell(o.Summary), support(o.Batch), support(o.Incremental), code(o.SQL))
	}
	return b.String()
}

func support(s plan.Support) string {
	if s.Yes {
		return "yes"
	}
	return "no: " + cell(s.Why)
}

func stateTables() string {
	var b strings.Builder
	b.WriteString("| table | holds | used by |\n|---|---|---|\n")
	var order []plan.StateTable
	users := map[string][]string{}
	for _, o := range plan.Ops {
		for _, t := range o.State {
			if users[t.Name] == nil {
				order = append(order, t)
			}
			users[t.Name] = append(users[t.Name], o.Name)
		}
	}
	for _, t := range order {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", t.Name, cell(t.About), strings.Join(users[t.Name], ", "))
	}
	return b.String()
}
