package sqltest

import (
	"context"
	"fmt"
	"strings"

	riverbed "github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// closing asks batch for the groups of a query that a watermark has closed: those whose window ends at or before it, or whose session
// ends before it.
// That is a condition in HAVING where the query groups by a window; of other queries only the final answer is compared.
type closing struct {
	query *sql.Query
	sel   *sql.Select
	end   string // the expression of the window's end
	op    string // between it and the watermark
}

func newClosing(text string) *closing {
	st, err := sql.ParseOne(text)
	if err != nil {
		return nil
	}
	c := &closing{query: st.(*sql.Query), op: "<="}
	sel, ok := c.query.Body.(*sql.Select)
	if !ok || sel.GroupBy == nil || c.query.Limit != nil {
		return nil
	}
	c.sel = sel
	for _, g := range sel.GroupBy.Items {
		for _, e := range g.Exprs {
			if f, ok := e.(*sql.Function); ok {
				switch name := strings.ToLower(f.Name.String()); name {
				case "tumble", "hop", "cumulate", "session":
					if name == "session" {
						c.op = "<"
					}
					text := sql.Print(f)
					c.end = name + "_end" + text[strings.Index(text, "("):]
				}
			}
			if r, ok := e.(*sql.ColumnRef); ok && strings.EqualFold(sql.Print(r), "window_end") {
				c.end = "window_end"
			}
		}
	}
	if c.end == "" {
		return nil
	}
	for _, t := range sel.From {
		if w, ok := t.(*sql.WindowTable); ok && strings.EqualFold(w.Kind, "session") {
			c.op = "<"
		}
	}
	return c
}

func stamp(w flow.Watermark) string {
	switch w {
	case flow.NoWatermark:
		return "none"
	case flow.EndWatermark:
		return "end"
	}
	return types.Format(int64(w), types.TsUS)
}

// answer runs the query over the closed groups; ok is false when it does not know how.
func (c *closing) answer(s *riverbed.Session, w flow.Watermark) (rows Bag, ok bool, err error) {
	if c == nil {
		return nil, false, nil
	}
	text := "FALSE"
	switch w {
	case flow.NoWatermark:
	case flow.EndWatermark:
		text = "TRUE"
	default:
		text = fmt.Sprintf("%s %s TIMESTAMP '%s'", c.end, c.op, stamp(w))
	}
	had := c.sel.Having
	if had != nil {
		text = "(" + sql.Print(had) + ") AND " + text
	}
	if c.sel.Having, err = sql.ParseExpr(text); err != nil {
		return nil, false, err
	}
	asked := sql.Print(c.query)
	c.sel.Having = had
	q, err := s.Query(context.Background(), asked, nil)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", asked, err)
	}
	got, err := Rows(q)
	return BagOf(got), true, err
}
