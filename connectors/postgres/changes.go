package postgres

import (
	"slices"
	"strings"

	"github.com/jackc/pglogrepl"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// image is a row that came or went.
type image struct {
	values [][]byte // nil: NULL
	weight int64
	// gone, beside a row that came in place of the one of its key: the key alone, should the row not be readable.
	gone [][]byte
}

// changeReader turns messages of a transaction into rows that come and go.
type changeReader struct {
	s       *stream
	at      pglogrepl.LSN // of the transaction
	columns []int         // by field: the column of the messages; nil: the table was not described yet
}

func newChangeReader(s *stream) *changeReader { return &changeReader{s: s} }

// images is what a message says of our table.
func (c *changeReader) images(msg pglogrepl.Message) ([]image, error) {
	ours := func(id uint32) bool { return id == c.s.table.oid }
	switch m := msg.(type) {
	case *pglogrepl.RelationMessage:
		if ours(m.RelationID) {
			return nil, c.describe(m)
		}
		if m.Namespace == c.s.table.schema && m.RelationName == c.s.table.name {
			return nil, c.changed("was dropped and made again")
		}
	case *pglogrepl.InsertMessage:
		if ours(m.RelationID) {
			return c.came(m.Tuple, nil, false)
		}
	case *pglogrepl.UpdateMessage:
		if ours(m.RelationID) {
			return c.updated(m)
		}
	case *pglogrepl.DeleteMessage:
		if ours(m.RelationID) {
			return c.went(m.OldTuple)
		}
	case *pglogrepl.TruncateMessage:
		if slices.ContainsFunc(m.RelationIDs, ours) {
			return nil, errs.New(errs.Unsupported, "read", "the table %s was emptied by TRUNCATE at %s, and the log does not say which rows went", c.s.table, c.at).
				WithHint("empty it by DELETE; now start the pipeline anew, without its checkpoints")
		}
	}
	return nil, nil
}

// changed is the error of a table that is not what it was when the stream was opened.
func (c *changeReader) changed(how string) error {
	return errs.New(errs.Schema, "read", "the table %s %s before the transaction at %s of the log, where reading stops", c.s.table, how, c.at).
		WithHint("start the pipeline anew with the table as it is")
}

// describe compares the table with what it was. Columns that were added are nobody's here.
func (c *changeReader) describe(m *pglogrepl.RelationMessage) error {
	t := c.s.table
	c.columns = make([]int, len(c.s.fields))
	for i, at := range c.s.at {
		want := t.columns[at]
		k := slices.IndexFunc(m.Columns, func(col *pglogrepl.RelationMessageColumn) bool { return col.Name == want.name })
		if k < 0 {
			return c.changed("lost the column " + quote(want.name) + ", or its publication did,")
		}
		if m.Columns[k].DataType != want.typ {
			return c.changed("got another type for the column " + quote(want.name))
		}
		c.columns[i] = k
	}
	full := m.ReplicaIdentity == 'f'
	if full != (c.s.key == nil) || m.ReplicaIdentity == 'n' {
		return c.changed("got another replica identity")
	}
	if full {
		return nil
	}
	var key []string
	for _, col := range m.Columns {
		if col.Flags&1 != 0 {
			key = append(key, col.Name)
		}
	}
	slices.Sort(key)
	if was := slices.Sorted(slices.Values(t.key)); !slices.Equal(key, was) {
		return c.changed("got another key, (" + strings.Join(key, ", ") + ") instead of (" + strings.Join(was, ", ") + "),")
	}
	return nil
}

// values takes the values of the fields from a tuple. What the log left out because an UPDATE did not touch it is taken from the
// old row; kept are fields for which there is none.
func (c *changeReader) values(tuple, old *pglogrepl.TupleData) (out [][]byte, kept []int, err error) {
	if c.columns == nil || tuple == nil {
		return nil, nil, errs.New(errs.Source, "read", "the log of %s has a row of the table %s and does not say what it is of", c.s.db, c.s.table)
	}
	out = make([][]byte, len(c.columns))
	for i, k := range c.columns {
		if k >= len(tuple.Columns) {
			return nil, nil, errs.New(errs.Source, "read", "a row of the table %s in the log of %s has %d columns, and should have more", c.s.table, c.s.db, len(tuple.Columns))
		}
		v := tuple.Columns[k]
		if v.DataType == pglogrepl.TupleDataTypeToast && old != nil && k < len(old.Columns) {
			v = old.Columns[k]
		}
		switch v.DataType {
		case pglogrepl.TupleDataTypeNull:
		case pglogrepl.TupleDataTypeText:
			if out[i] = v.Data; v.Data == nil {
				out[i] = []byte{}
			}
		case pglogrepl.TupleDataTypeToast:
			kept = append(kept, i)
		default:
			return nil, nil, errs.New(errs.Source, "read", "a value of the table %s in the log of %s has the unknown form %q", c.s.table, c.s.db, v.DataType)
		}
	}
	return out, kept, nil
}

// keyOnly keeps of a row what says whose it is.
func (c *changeReader) keyOnly(values [][]byte) [][]byte {
	out := make([][]byte, len(values))
	for _, at := range c.s.key {
		out[at] = values[at]
	}
	return out
}

// came is a row that comes. moved: it has another key than it had, so what was left out of it is known by no row of its key.
func (c *changeReader) came(tuple, old *pglogrepl.TupleData, moved bool) ([]image, error) {
	values, kept, err := c.values(tuple, old)
	if err != nil {
		return nil, err
	}
	for _, i := range kept {
		if c.s.key == nil || moved || i >= flow.MostKept || slices.Contains(c.s.key, i) {
			return nil, errs.New(errs.Source, "read", "the transaction at %s changed the key of a row of the table %s and left its column %q as it was, which is long and so not in the log", c.at, c.s.table, c.s.fields[i].Name).
				WithHint("ALTER TABLE %s REPLICA IDENTITY FULL puts old rows into the log, from then on; or declare the stream without that column", c.s.table.sql())
		}
	}
	im := image{values: values, weight: flow.Keeping(kept...)}
	if c.s.key != nil {
		im.gone = c.keyOnly(values)
	}
	return []image{im}, nil
}

func (c *changeReader) went(old *pglogrepl.TupleData) ([]image, error) {
	values, _, err := c.values(old, nil)
	if err != nil {
		return nil, err
	}
	if c.s.key != nil {
		values = c.keyOnly(values)
	}
	return []image{{values: values, weight: -1}}, nil
}

// updated: with whole old rows the old one goes; otherwise the new one takes the place of the one of its key, and when the key has
// changed, the old key goes.
func (c *changeReader) updated(m *pglogrepl.UpdateMessage) ([]image, error) {
	var out []image
	var err error
	switch {
	case m.OldTuple != nil:
		if out, err = c.went(m.OldTuple); err != nil {
			return nil, err
		}
	case c.s.key == nil:
		return nil, c.changed("got another replica identity")
	}
	old := m.OldTuple
	if m.OldTupleType != pglogrepl.UpdateMessageTupleTypeOld {
		old = nil // it is the key alone
	}
	came, err := c.came(m.NewTuple, old, m.OldTuple != nil)
	if err != nil { // all of the change or nothing
		return nil, err
	}
	return append(out, came...), nil
}
