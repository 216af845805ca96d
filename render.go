package riverbed

import (
	"context"
	"fmt"
	"html"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/riverbed/riverbed/core/types"
)

// RenderOptions bounds what Render prints.
type RenderOptions struct {
	HTML    bool
	MaxRows int // rows shown; 0 is 40. Of more, the first and the last are shown.
	MaxCell int // characters of one cell; 0 is 80
}

// Render runs the query as batch and prints its rows as a table: for show() and for notebooks.
func (q *Query) Render(ctx context.Context, o RenderOptions) (string, error) {
	r, err := q.Run(ctx)
	if err != nil {
		return "", err
	}
	defer r.Release()
	p := newPreview(q.columns, o)
	for r.Next() {
		p.add(r.RecordBatch())
	}
	if err := r.Err(); err != nil {
		return "", err
	}
	return p.draw(), nil
}

// RenderRows prints rows as a table, with names and types above and the number of rows below.
func RenderRows(fields []types.Field, batches []arrow.RecordBatch, o RenderOptions) string {
	p := newPreview(fields, o)
	for _, b := range batches {
		p.add(b)
	}
	return p.draw()
}

// preview keeps the cells that are shown of a result, so that a large one is counted and not gathered.
type preview struct {
	fields     []types.Field
	o          RenderOptions
	total      int
	head, tail [][]string // tail: the last MaxRows rows behind the head
}

func newPreview(fields []types.Field, o RenderOptions) *preview {
	if o.MaxRows <= 0 {
		o.MaxRows = 40
	}
	if o.MaxCell <= 0 {
		o.MaxCell = 80
	}
	return &preview{fields: fields, o: o}
}

func (p *preview) add(b arrow.RecordBatch) {
	n := int(b.NumRows())
	for r := range n {
		switch {
		case len(p.head) < p.headRows():
			p.head = append(p.head, p.cells(b, r))
		case n-r <= p.o.MaxRows: // others of this batch are not among the last
			if p.tail = append(p.tail, p.cells(b, r)); len(p.tail) > 2*p.o.MaxRows {
				p.tail = append([][]string{}, p.tail[len(p.tail)-p.o.MaxRows:]...)
			}
		}
	}
	p.total += n
}

func (p *preview) headRows() int { return (p.o.MaxRows + 1) / 2 }

func (p *preview) cells(b arrow.RecordBatch, r int) []string {
	out := make([]string, len(p.fields))
	for c, f := range p.fields {
		out[c] = cell(b.Column(c), r, f.Type, p.o.MaxCell)
	}
	return out
}

func (p *preview) draw() string {
	rows := p.head
	footer := fmt.Sprintf("%d %s", p.total, plural(p.total, "row"))
	last := p.o.MaxRows - p.headRows()
	if p.total > p.o.MaxRows {
		rows = append(append(rows, nil), p.tail[len(p.tail)-last:]...) // nil: the gap
		footer += fmt.Sprintf(" (%d shown)", p.o.MaxRows)
	} else {
		rows = append(rows, p.tail...)
	}
	if p.o.HTML {
		return htmlTable(p.fields, rows, footer)
	}
	return boxTable(p.fields, rows, footer)
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func cell(a arrow.Array, i int, t types.Type, width int) string {
	if a.IsNull(i) {
		return "NULL"
	}
	s := []rune(types.Format(types.ValueAt(a, i, t), t))
	if len(s) > width {
		s = append(s[:width-1], '…')
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return r
	}, string(s))
}

func rightAligned(t types.Type) bool { return t.IsNumeric() }

func boxTable(fields []types.Field, rows [][]string, footer string) string {
	w := table.NewWriter()
	w.SetStyle(table.StyleLight)
	w.Style().Format.Header, w.Style().Format.Footer = text.FormatDefault, text.FormatDefault
	names, kinds := table.Row{}, table.Row{}
	var configs []table.ColumnConfig
	for i, f := range fields {
		names, kinds = append(names, f.Name), append(kinds, f.Type.String())
		c := table.ColumnConfig{Number: i + 1, AlignHeader: text.AlignCenter}
		if rightAligned(f.Type) {
			c.Align = text.AlignRight
		}
		configs = append(configs, c)
	}
	w.AppendHeader(names)
	w.AppendHeader(kinds)
	w.SetColumnConfigs(configs)
	for _, r := range rows {
		line := table.Row{}
		for i := range fields {
			if r == nil {
				line = append(line, "·")
			} else {
				line = append(line, r[i])
			}
		}
		w.AppendRow(line)
	}
	return w.Render() + "\n" + footer + "\n"
}

func htmlTable(fields []types.Field, rows [][]string, footer string) string {
	var b strings.Builder
	b.WriteString("<table class=\"riverbed\"><thead><tr>")
	for _, f := range fields {
		fmt.Fprintf(&b, "<th>%s<br><small>%s</small></th>", html.EscapeString(f.Name), html.EscapeString(f.Type.String()))
	}
	b.WriteString("</tr></thead><tbody>")
	for _, r := range rows {
		b.WriteString("<tr>")
		for i, f := range fields {
			v, style := "·", ""
			if r != nil {
				v = r[i]
			}
			if rightAligned(f.Type) {
				style = " style=\"text-align:right\""
			}
			fmt.Fprintf(&b, "<td%s>%s</td>", style, html.EscapeString(v))
		}
		b.WriteString("</tr>")
	}
	fmt.Fprintf(&b, "</tbody></table><p>%s</p>", html.EscapeString(footer))
	return b.String()
}
