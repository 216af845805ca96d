package riverbed

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

// MERGE is three queries, one for each kind of its clauses. Each says of its rows which clause is theirs, the first whose
// condition holds, and what the columns become. All changes are one edit, which views take as one step.

// merging is a MERGE while it is carried out.
type merging struct {
	s    *Session
	cat  *scopeCatalog
	t    *memTable
	st   *sql.Merge
	text string

	on     sql.Expr
	source []sql.Ident // the columns of the source
	edit   *tableEdit
	ids    map[int64]bool // rows that were met
	gone   []int64
	added  [][]arrow.Array
	count  int64
}

func (s *Session) merge(ctx context.Context, cat *scopeCatalog, st *sql.Merge, text string) (*Query, error) {
	t, err := cat.cat.targetTable(st.Target.Name)
	if err != nil {
		return nil, err
	}
	if len(st.Returning) > 0 {
		return nil, errs.E(errs.Unsupported, "plan", st.Returning[0].Expr.Position(), "RETURNING in MERGE is not supported yet")
	}
	m := &merging{s: s, cat: cat, t: t, st: st, text: text, on: st.On, edit: t.edit(), ids: map[int64]bool{}}
	if err := m.sourceColumns(ctx); err != nil {
		return nil, err
	}
	for _, match := range []sql.MergeMatch{sql.Matched, sql.NotMatched, sql.NotMatchedBySource} {
		if err := m.clauses(ctx, match); err != nil {
			return nil, placed(err, st.Position())
		}
	}
	slices.Sort(m.gone)
	m.edit.remove(m.gone)
	for _, cols := range m.added {
		m.edit.append(cols, cols[0].Len())
	}
	if err := m.edit.checkKeys(m.edit.written()); err != nil {
		t.forgetKeys()
		return nil, placed(err, st.Position())
	}
	return countResult(m.count), s.apply(ctx, m.edit)
}

// sourceColumns plans the source alone, for its columns, and writes USING (a, b) out.
func (m *merging) sourceColumns(ctx context.Context) error {
	q, err := m.s.planQuery(ctx, m.cat, &sql.Query{At: m.st.At, With: m.st.With, Body: everything(m.st.Source)}, m.text)
	if err != nil {
		return err
	}
	for _, f := range q.columns {
		m.source = append(m.source, sql.Ident{At: m.st.At, Name: f.Name})
	}
	for _, c := range m.st.Using {
		both := &sql.Binary{At: c.At, Op: sql.OpEq, Left: ref(m.st.Target, c.Name), Right: m.ofSource(c)}
		if m.on == nil {
			m.on = both
		} else {
			m.on = &sql.Binary{At: c.At, Op: sql.OpAnd, Left: m.on, Right: both}
		}
	}
	return nil
}

func everything(from sql.TableRef) *sql.Select {
	at := sql.At{Pos: from.Position()}
	return &sql.Select{At: at, Items: []sql.SelectItem{{Expr: &sql.Star{At: at}}}, From: []sql.TableRef{from}}
}

// ofSource is a column of the source, by the source's alias where it has one.
func (m *merging) ofSource(c sql.Ident) sql.Expr {
	var alias sql.Ident
	switch src := m.st.Source.(type) {
	case *sql.Table:
		if alias = src.Alias.Name; alias.IsZero() {
			alias = src.Name.Last()
		}
	case *sql.SubqueryTable:
		alias = src.Alias.Name
	case *sql.TableFunction:
		alias = src.Alias.Name
	}
	if alias.IsZero() {
		return &sql.ColumnRef{At: c.At, Parts: sql.Name{c}}
	}
	return &sql.ColumnRef{At: c.At, Parts: sql.Name{alias, c}}
}

// clauses carries out the clauses of one kind.
func (m *merging) clauses(ctx context.Context, match sql.MergeMatch) error {
	at := m.st.At
	var whens []sql.MergeWhen
	which := &sql.Case{At: at, Else: &sql.Literal{At: at, Kind: sql.LitInt, Text: "0"}}
	for _, w := range m.st.Whens {
		if w.Match != match {
			continue
		}
		whens = append(whens, w)
		cond := w.Cond
		if cond == nil {
			cond = &sql.Literal{At: at, Kind: sql.LitBool, Text: "true"}
		}
		which.Whens = append(which.Whens, sql.When{Cond: cond, Then: &sql.Literal{At: at, Kind: sql.LitInt, Text: fmt.Sprint(len(whens))}})
	}
	if len(whens) == 0 {
		return nil
	}
	items, err := m.values(whens, which, match)
	if err != nil {
		return err
	}
	items = append([]sql.SelectItem{{Expr: which}}, items...)
	sel := &sql.Select{At: at, Items: items}
	switch match {
	case sql.Matched:
		sel.Items = append([]sql.SelectItem{{Expr: ref(m.st.Target, rowIDColumn)}}, items...)
		sel.From = []sql.TableRef{&sql.Join{At: at, Kind: sql.InnerJoin, Left: m.st.Target, Right: m.st.Source, On: m.on}}
	case sql.NotMatched:
		sel.Items = append([]sql.SelectItem{{Expr: &sql.Literal{At: at, Kind: sql.LitNull, Text: "null"}}}, items...)
		sel.From, sel.Where = []sql.TableRef{m.st.Source}, m.without(m.st.Target)
	default:
		sel.Items = append([]sql.SelectItem{{Expr: ref(m.st.Target, rowIDColumn)}}, items...)
		sel.From, sel.Where = []sql.TableRef{m.st.Target}, m.without(m.st.Source)
	}
	q, err := m.s.planQuery(ctx, m.cat, &sql.Query{At: at, With: m.st.With, Body: sel}, m.text)
	if err != nil {
		return err
	}
	q.divert = false
	batches, err := q.all(ctx)
	if err != nil {
		return err
	}
	for _, b := range batches {
		if err := m.take(ctx, q, b, whens, match); err != nil {
			return err
		}
	}
	return nil
}

// without is NOT EXISTS of the other side.
func (m *merging) without(other sql.TableRef) sql.Expr {
	at := m.st.At
	one := []sql.SelectItem{{Expr: &sql.Literal{At: at, Kind: sql.LitInt, Text: "1"}}}
	return &sql.Not{At: at, X: &sql.Exists{At: at, Query: &sql.Query{At: at, Body: &sql.Select{At: at, Items: one, From: []sql.TableRef{other}, Where: m.on}}}}
}

// values are, for each column that is written, what it becomes by the clause of the row.
func (m *merging) values(whens []sql.MergeWhen, which *sql.Case, match sql.MergeMatch) ([]sql.SelectItem, error) {
	at := m.st.At
	items := make([]sql.SelectItem, len(m.t.columns))
	cases := make([]*sql.Case, len(m.t.columns))
	for i := range cases {
		cases[i] = &sql.Case{At: at}
	}
	for n, w := range whens {
		sets, err := m.assignments(w)
		if err != nil {
			return nil, err
		}
		for i, f := range m.t.columns {
			x := sets[i]
			switch {
			case x != nil:
			case match == sql.NotMatched:
				x = m.t.defaultOf(i, &sql.Default{At: at})
			default:
				x = ref(m.st.Target, f.Name)
			}
			cond := which.Whens[n].Cond
			cases[i].Whens = append(cases[i].Whens, sql.When{Cond: cond, Then: &sql.Cast{At: at, X: x, Type: typeNameOf(f.Type)}})
		}
	}
	for i := range items {
		items[i].Expr = cases[i]
	}
	return items, nil
}

// assignments are what a clause gives the table's columns, nil where it says nothing.
func (m *merging) assignments(w sql.MergeWhen) ([]sql.Expr, error) {
	out := make([]sql.Expr, len(m.t.columns))
	set := func(name string, pos sql.Ident, x sql.Expr) error {
		i, err := m.t.column(name, pos.Pos)
		if err == nil {
			err = m.t.notGenerated(i, pos.Pos)
		}
		if err != nil {
			return err
		}
		if d, ok := x.(*sql.Default); ok {
			x = m.t.defaultOf(i, d)
		}
		out[i] = x
		return nil
	}
	switch {
	case w.Action != sql.MergeUpdate && w.Action != sql.MergeInsert:
	case w.Set != nil:
		for _, a := range w.Set {
			if err := set(a.Column.Name, a.Column, a.Value); err != nil {
				return nil, err
			}
		}
	case w.ByName:
		for _, c := range m.source {
			if err := set(c.Name, c, m.ofSource(c)); err != nil {
				return nil, err
			}
		}
	default:
		to := w.Columns
		if to == nil {
			for _, i := range m.t.plain() {
				to = append(to, sql.Ident{At: w.At, Name: m.t.columns[i].Name})
			}
		}
		values := w.Values
		if values == nil {
			for _, c := range m.source {
				values = append(values, m.ofSource(c))
			}
		}
		if len(values) != len(to) {
			return nil, errs.E(errs.Schema, "bind", w.Pos, "%d values are given for %d columns", len(values), len(to))
		}
		for i, c := range to {
			if err := set(c.Name, c, values[i]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// take carries out what a batch of rows asks for.
func (m *merging) take(ctx context.Context, q *Query, b arrow.RecordBatch, whens []sql.MergeWhen, match sql.MergeMatch) error {
	which := b.Column(1).(*array.Int32).Int32Values()
	var written []int32
	for r, n := range which {
		if n == 0 || whens[n-1].Action == sql.MergeNothing {
			continue
		}
		w := whens[n-1]
		if w.Action == sql.MergeError {
			return errs.E(errs.Data, "merge", w.Pos, "WHEN %s: %s", match, errorMessage(w))
		}
		m.count++
		if match != sql.NotMatched {
			id := b.Column(0).(*array.Int64).Value(r)
			if m.ids[id] {
				m.count--
				continue // as UPDATE: a row that the source matches several times changes once, by its first match
			}
			m.ids[id] = true
			m.gone = append(m.gone, id)
		}
		if w.Action != sql.MergeDelete {
			written = append(written, int32(r))
		}
	}
	if len(written) == 0 {
		return nil
	}
	at := make([]int, len(m.t.columns))
	for i := range at {
		at[i] = i + 2
	}
	cols, err := m.s.tableColumns(ctx, m.t, takeBatch(b, written), q.assigned(), at)
	if err == nil {
		m.added = append(m.added, cols)
	}
	return err
}

func errorMessage(w sql.MergeWhen) string {
	if l, ok := w.Message.(*sql.Literal); ok {
		return l.Text
	}
	return "the statement says that this is an error"
}
