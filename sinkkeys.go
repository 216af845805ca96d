package riverbed

import (
	"slices"

	"github.com/riverbed/riverbed/core/plan"
)

// uniqueKeys are the unique keys of a query's rows as positions of columns: what a sink needs to know that writes by key.
func uniqueKeys(root plan.Node) [][]int {
	var keys [][]int
	for _, k := range plan.PropsOf(root).Keys {
		key := []int{} // the empty key: there is one row at most
		for _, id := range plan.IDs(k) {
			key = append(key, slices.IndexFunc(root.Columns(), func(c plan.Column) bool { return c.ID == id }))
		}
		if !slices.Contains(key, -1) {
			keys = append(keys, key)
		}
	}
	return keys
}
