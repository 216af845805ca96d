package plan

import (
	"fmt"
	"math"
	"strings"

	"github.com/riverbed/riverbed/core/expr"
)

// Metrics is what one operator did in a run, for EXPLAIN ANALYZE.
type Metrics struct {
	Rows, Batches int64
	Nanos         int64 // inputs included
}

// ExplainOptions say how and for what a plan is explained.
type ExplainOptions struct {
	Mode Mode
	// Why is the reason for the mode; empty takes ModeOf's.
	Why string
	// Notes are what the rules want to tell.
	Notes []string
	// Actual returns an operator's metrics after a run; nil explains without running.
	Actual func(Node) (Metrics, bool)
}

// Explain prints an optimized query for people: the mode and why, the emit policy and why, and the tree. Below each
// operator stands what is known of it: rows, unique keys, what scans read and skip by, and in incremental mode whether
// its output is append-only, and its state. The text is stable, so that golden files may hold it.
func Explain(q *Query, o ExplainOptions) (string, error) {
	x := explainer{o: o, est: NewEstimator(NewFacts()), seen: map[Node]bool{}}
	if o.Mode == 0 || o.Why == "" {
		mode, why := ModeOf(q)
		if o.Mode == 0 {
			x.o.Mode = mode
		}
		if x.o.Why == "" && mode == x.o.Mode {
			x.o.Why = why
		}
	}
	x.head("mode", x.o.Mode.String(), x.o.Why)
	if x.o.Mode == Incremental {
		policy, why, err := EmitFor(q)
		if err != nil {
			return "", err
		}
		x.emit = policy
		name := policy.String()
		if policy == EmitEvery {
			name = fmt.Sprintf("EVERY %d ms", q.EveryUS/1000)
		}
		x.head("emit", name, why)
		x.growth(q.Root)
	} else if q.Emit != EmitDefault {
		x.head("emit", "none", "EMIT changes nothing in batch mode")
	}
	for _, n := range o.Notes {
		x.head("note", n, "")
	}
	x.b.WriteByte('\n')
	x.node(q.Root, 0)
	return x.b.String(), nil
}

type explainer struct {
	o    ExplainOptions
	emit EmitPolicy
	est  *Estimator
	seen map[Node]bool // a subplan that several nodes read is printed once
	b    strings.Builder
}

func (x *explainer) head(label, text, why string) {
	if why != "" {
		text += ", because " + why
	}
	fmt.Fprintf(&x.b, "%-6s %s\n", label, text)
}

// growth warns of state without bound, once for the whole query.
func (x *explainer) growth(root Node) {
	var names []string
	Walk(root, func(n Node) bool {
		for _, s := range StateOf(n, x.emit) {
			if !s.Bounded {
				names = append(names, s.Table)
			}
		}
		return true
	})
	if len(names) == 0 {
		x.head("state", "bounded", "")
		return
	}
	x.head("state", "grows without bound: "+strings.Join(names, ", "), "")
}

func (x *explainer) node(n Node, depth int) {
	indent := strings.Repeat("  ", depth)
	fmt.Fprintf(&x.b, "%s%s\n", indent, Describe(n))
	if x.seen[n] && len(n.Children()) > 0 {
		fmt.Fprintf(&x.b, "%s  | computed once, above\n", indent)
		return
	}
	x.seen[n] = true
	for _, line := range x.details(n) {
		fmt.Fprintf(&x.b, "%s  | %s\n", indent, line)
	}
	for _, c := range n.Children() {
		x.node(c, depth+1)
	}
}

func (x *explainer) details(n Node) []string {
	var facts []string
	if x.o.Mode == Incremental {
		edge := "append-only"
		if Updating(n, x.emit) {
			edge = "updating"
		}
		facts = append(facts, edge)
	}
	if x.o.Mode == Batch || !Live(n) { // nobody knows how many rows a stream will bring
		facts = append(facts, "about "+count(x.est.Of(n).Rows)+" rows")
	}
	if x.o.Actual != nil {
		if m, ok := x.o.Actual(n); ok {
			facts = append(facts, fmt.Sprintf("actual %d rows in %.1f ms", m.Rows, float64(m.Nanos)/1e6))
		}
	}
	if key := uniqueText(n, x.est.Facts.Of(n)); key != "" {
		facts = append(facts, key)
	}
	out := []string{strings.Join(facts, ", ")}
	if s, ok := n.(*Scan); ok {
		out = append(out, x.scan(s)...)
	}
	if x.o.Mode != Incremental {
		return out
	}
	if j, ok := n.(*Join); ok {
		if b, ok := JoinBounds(j); ok {
			out = append(out, b.String())
		}
	}
	for _, s := range StateOf(n, x.emit) {
		bound := "unbounded"
		if s.Bounded {
			bound = "bounded"
		}
		out = append(out, fmt.Sprintf("state %s: %s, %s", s.Table, bound, s.Why))
	}
	return out
}

func (x *explainer) scan(s *Scan) []string {
	out := []string{fmt.Sprintf("reads %d of %d columns", len(s.Cols), len(s.Source.Fields))}
	if ps := Predicates(s); len(ps) > 0 && s.Source.Relation != nil {
		names := make([]string, len(ps))
		for i, p := range ps {
			names[i] = s.Source.Fields[p.Column].Name
		}
		out = append(out, "skips by statistics of "+strings.Join(compactNames(names), ", "))
	}
	if w := s.Source.Watermark; w != nil && x.o.Mode == Incremental {
		sql := w.SQL
		if sql == "" {
			sql = s.Source.Fields[w.Column].Name
		}
		out = append(out, "watermark "+sql)
	}
	return out
}

func compactNames(names []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

// uniqueText names the first unique key.
func uniqueText(n Node, p *Props) string {
	if len(p.Keys) == 0 {
		return ""
	}
	if p.One() {
		return "one row"
	}
	names := map[expr.ColID]string{}
	for _, c := range n.Columns() {
		names[c.ID] = c.Name
	}
	var parts []string
	for _, id := range IDs(p.Keys[0]) {
		if names[id] == "" {
			return ""
		}
		parts = append(parts, names[id])
	}
	return "key (" + strings.Join(parts, ", ") + ")"
}

// count prints a number of rows with at most two digits that count, so that golden files do not follow every change
// of a guess.
func count(f float64) string {
	if f < 100 {
		return fmt.Sprintf("%.0f", f)
	}
	scale := math.Pow(10, math.Floor(math.Log10(f))-1)
	return fmt.Sprintf("%.0f", math.Round(f/scale)*scale)
}
