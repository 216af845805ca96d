package incremental

// RowsOut is, for each table that has rows, how many of them are in the store alone.
func RowsOut(g *Graph) map[string]int {
	out := map[string]int{}
	for _, n := range g.nodes {
		for _, t := range n.tables() {
			if t.Len() > 0 {
				out[n.path+" "+t.Name()] += t.(interface{ Out() int }).Out()
			}
		}
	}
	return out
}
