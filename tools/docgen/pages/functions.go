package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// categories is the order of the reference.
var categories = []fn.Category{fn.Math, fn.Text, fn.DateTime, fn.Windowing, fn.Logic, fn.Nested, fn.JSONs, fn.Conversion, fn.Utility}

// typeTable lists the types with their other names and their form in Arrow.
func typeTable() string {
	names := types.Names()
	var b strings.Builder
	b.WriteString("| type | other names | Arrow |\n|---|---|---|\n")
	for _, t := range types.Listed() {
		var others []string
		for name, other := range names {
			if other.Equal(t) && name != t.String() {
				others = append(others, name)
			}
		}
		slices.Sort(others)
		fmt.Fprintf(&b, "| %s | %s | %s |\n", t, strings.Join(others, ", "), t.Arrow())
	}
	return b.String()
}

func scalars() string {
	var b strings.Builder
	for _, category := range categories {
		var list []*fn.Scalar
		for _, f := range fn.All {
			if f.Category == category {
				list = append(list, f)
			}
		}
		if len(list) == 0 {
			continue
		}
		slices.SortStableFunc(list, func(a, b *fn.Scalar) int {
			if a.Operator != b.Operator { // operators first
				if a.Operator {
					return -1
				}
				return 1
			}
			return strings.Compare(a.Name, b.Name)
		})
		fmt.Fprintf(&b, "### %s\n\n", category)
		for _, f := range list {
			scalar(&b, f)
		}
	}
	return b.String()
}

func scalar(b *strings.Builder, f *fn.Scalar) {
	heading(b, f.Name, f.Aliases, f.Summary)
	switch f.Purity {
	case fn.Stable:
		b.WriteString("One value for a batch run or a step. ")
	case fn.Volatile:
		b.WriteString("Another value at each call; refused over data that is updated. ")
	}
	differs(b, f.Differs)
	signatures(b, f.Signatures())
	var examples []string
	for _, x := range f.Examples {
		examples = append(examples, fmt.Sprintf("%s → %s", code(x.SQL), code(x.Want)))
	}
	fmt.Fprintf(b, "%s\n\n", strings.Join(examples, " · "))
}

func aggregates() string {
	list := slices.Clone(fn.Aggregates)
	slices.SortFunc(list, func(a, b *fn.Aggregate) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	for _, f := range list {
		heading(&b, f.Name, f.Aliases, f.Summary)
		switch f.Algebra {
		case fn.Linear:
			b.WriteString("Incremental: a retraction is an addition of negative weight; state does not grow with the rows of a group. ")
		case fn.Ordered:
			b.WriteString("Incremental: over updating input the values of a group are kept. ")
		case fn.BatchOnly:
			fmt.Fprintf(&b, "Batch only: %s. ", strings.TrimSuffix(f.Why, "."))
		}
		if f.Ordering {
			b.WriteString("Takes ORDER BY. ")
		}
		if f.KeepNulls {
			b.WriteString("NULLs count. ")
		}
		differs(&b, f.Differs)
		signatures(&b, f.Signatures())
		var examples []string
		for _, x := range f.Examples {
			examples = append(examples, fmt.Sprintf("%s over %s → %s", code(f.Name+"("+x.SQL+")"), code(x.Rows), code(x.Want)))
		}
		fmt.Fprintf(&b, "%s\n\n", strings.Join(examples, " · "))
	}
	return b.String()
}

func heading(b *strings.Builder, name string, aliases []string, summary string) {
	fmt.Fprintf(b, "#### %s\n\n%s ", code(name), summary)
	if len(aliases) > 0 {
		fmt.Fprintf(b, "Also %s. ", "`"+strings.Join(aliases, "`, `")+"`")
	}
}

func differs(b *strings.Builder, text string) {
	if text != "" {
		fmt.Fprintf(b, "*Differs from DuckDB:* %s ", text)
	}
}

// shown is how many signatures of a function are worth reading.
const shown = 8

func signatures(b *strings.Builder, list []string) {
	b.WriteString("\n\n")
	for i, s := range list {
		if i == shown {
			fmt.Fprintf(b, "    … and %d more\n", len(list)-shown)
			break
		}
		fmt.Fprintf(b, "    %s\n", s)
	}
	b.WriteString("\n")
}

// differences lists what core/fn knows to be unlike DuckDB: the entries of the registry, then single expressions.
func differences(root string) (string, error) {
	var b strings.Builder
	b.WriteString("| function | difference |\n|---|---|\n")
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", code(name), cell(text))
		}
	}
	for _, f := range fn.All {
		row(f.Name, f.Differs)
	}
	for _, f := range fn.Aggregates {
		row(f.Name, f.Differs)
	}
	known, err := os.ReadFile(filepath.Join(root, "core/fn/testdata/known.tsv"))
	if err != nil {
		return "", err
	}
	b.WriteString("\nSingle expressions, from the comparison that the tests of `core/fn` make:\n\n| expression | why |\n|---|---|\n")
	for line := range strings.Lines(string(known)) {
		if expr, why, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(line, "#") {
			row(expr, why)
		}
	}
	return b.String(), nil
}
