package files

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// sampleFiles bounds how many files a schema is inferred from.
const sampleFiles = 32

// set is the files of one source with their common columns: those of the files, then the partitions.
type set struct {
	format Format
	fields []types.Field
	data   int // how many of fields come from the files
	parts  partitions
	union  bool
}

// member is one file of a set.
type member struct {
	set    *set
	file   File
	ref    Ref
	from   []int         // by column of the set: column of the file, or -1 when the file has none
	types  []types.Type  // by column of the set: its type in the file
	consts []types.Value // partition values
}

// newSet lists the files and agrees on their columns.
func newSet(ctx context.Context, format Format, req connectors.OpenRequest) (*set, []Ref, error) {
	patterns := req.Settings.List("path")
	refs, err := expand(ctx, format, patterns)
	if err != nil {
		return nil, nil, err
	}
	s := &set{format: format, union: req.Settings.Bool("union_by_name")}
	if s.parts, err = readPartitions(names(refs), req.Settings.String("hive_partitioning")); err != nil {
		return nil, nil, err
	}
	fields := req.Schema
	if fields == nil {
		if len(refs) == 0 {
			return nil, nil, noFiles(ctx, format, patterns)
		}
		sample := refs[:min(len(refs), sampleFiles)]
		if format.SelfDescribing() && !s.union {
			sample = refs[:1]
		} else if format.SelfDescribing() {
			sample = refs
		}
		if fields, err = s.infer(ctx, sample); err != nil {
			return nil, nil, err
		}
	}
	s.setFields(fields)
	return s, refs, nil
}

func names(refs []Ref) []string {
	out := make([]string, len(refs))
	for i, r := range refs {
		out[i] = r.Name()
	}
	return out
}

// infer finds the columns; under union_by_name those of all files, each in the widest of its types.
func (s *set) infer(ctx context.Context, sample []Ref) ([]types.Field, error) {
	for _, ref := range sample {
		if err := notPacked(ctx, s.format, ref); err != nil {
			return nil, err
		}
	}
	if !s.union {
		fields, err := s.format.Infer(ctx, sample)
		return types.DistinctNames(fields), err
	}
	var out []types.Field
	first := map[string]string{}
	for _, ref := range sample {
		fields, err := s.format.Infer(ctx, []Ref{ref})
		if err != nil {
			return nil, err
		}
		for _, f := range types.DistinctNames(fields) {
			at := find(out, f.Name)
			if at < 0 {
				out, first[f.Name] = append(out, f), ref.Name()
				continue
			}
			t, ok := unify(out[at].Type, f.Type)
			if !ok {
				return nil, errs.New(errs.Source, "read schema", "column %q is %s in %q and %s in %q, and no type holds both", f.Name, out[at].Type, first[f.Name], f.Type, ref.Name()).
					WithHint("read the files apart and cast the column")
			}
			out[at].Type = t
		}
	}
	return out, nil
}

// setFields makes the columns of the set. A partition column hides one of the same name in the files, and a declared
// column of a partition's name gives only its place.
func (s *set) setFields(fields []types.Field) {
	for _, f := range fields {
		if find(s.parts.fields, f.Name) < 0 {
			s.fields = append(s.fields, f)
		}
	}
	s.data = len(s.fields)
	s.fields = append(s.fields, s.parts.fields...)
}

func find(fields []types.Field, name string) int {
	for i, f := range fields {
		if f.Name == name {
			return i
		}
	}
	return -1
}

// open opens the file and matches its columns with the set's by name.
func (s *set) open(ctx context.Context, ref Ref, parts []types.Value) (*member, error) {
	if err := notPacked(ctx, s.format, ref); err != nil {
		return nil, err
	}
	file, err := s.format.Open(ctx, ref, s.fields[:s.data])
	if err != nil {
		return nil, err
	}
	have := types.DistinctNames(file.Fields())
	m := &member{set: s, file: file, ref: ref, consts: parts, from: make([]int, s.data), types: make([]types.Type, s.data)}
	for i, want := range s.fields[:s.data] {
		at := find(have, want.Name)
		if at < 0 {
			at = findFold(have, want.Name)
		}
		m.from[i] = at
		if at < 0 {
			if s.union {
				continue
			}
			return nil, errs.New(errs.Source, "read schema", "the file %q has no column %q, which other files of the set have; it has %s", ref.Name(), want.Name, listFields(have)).
				WithHint("set union_by_name = true to read NULL where a file has no such column")
		}
		m.types[i] = have[at].Type
		if !canWiden(have[at].Type, want.Type) {
			return nil, errs.New(errs.Source, "read schema", "column %q is %s in the file %q and %s in the rest of the set", want.Name, have[at].Type, ref.Name(), want.Type).
				WithHint("set union_by_name = true to take the wider type, or read the files apart and cast the column")
		}
	}
	return m, nil
}

func findFold(fields []types.Field, name string) int {
	for i, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return i
		}
	}
	return -1
}

func listFields(fields []types.Field) string {
	var b strings.Builder
	for i, f := range fields {
		if i == 8 {
			fmt.Fprintf(&b, ", … (%d columns)", len(fields))
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", f.Name)
	}
	return b.String()
}

// projection maps the requested columns of the set to columns of one file.
type projection struct {
	m       *member
	columns []int // of the set
	read    []int // of the file
	at      []int // by requested column: place in read, or -1
	schema  *arrow.Schema
	narrow  *flow.Narrowing // in terms of read
	room    func(bytes int) []byte
}

func (m *member) project(columns []int, schema *arrow.Schema) *projection {
	p := &projection{m: m, columns: columns, at: make([]int, len(columns)), schema: schema}
	for i, c := range columns {
		p.at[i] = -1
		if c < m.set.data && m.from[c] >= 0 {
			p.at[i] = len(p.read)
			p.read = append(p.read, m.from[c])
		}
	}
	return p
}

// narrowing puts the stages in terms of the file's columns; nil when one reads a column that the file does not hold as it is.
func (p *projection) narrowing(n *flow.Narrowing) *flow.Narrowing {
	if n == nil {
		return nil
	}
	out := &flow.Narrowing{Take: n.Take, Kept: n.Kept, Stages: make([]flow.Stage, len(n.Stages))}
	for i, st := range n.Stages {
		cols := make([]int, len(st.Columns))
		for k, c := range st.Columns {
			of := p.columns[c]
			if cols[k] = p.at[c]; cols[k] < 0 || !p.m.types[of].Equal(p.m.set.fields[of].Type) {
				return nil
			}
		}
		out.Stages[i] = flow.Stage{Columns: cols, Pure: st.Pure, Select: st.Select}
	}
	return out
}

// apply brings a batch of the file into the columns of the request.
func (p *projection) apply(b arrow.RecordBatch) arrow.RecordBatch {
	s, rows := p.m.set, int(b.NumRows())
	cols := make([]arrow.Array, len(p.columns))
	for i, c := range p.columns {
		switch {
		case p.at[i] >= 0:
			cols[i] = widen(b.Column(p.at[i]), p.m.types[c], s.fields[c].Type)
		case c < s.data:
			cols[i] = kernels.Nulls(s.fields[c].Type.Arrow(), rows)
		default:
			cols[i] = constant(p.m.consts[c-s.data], s.fields[c].Type, rows)
		}
	}
	return array.NewRecordBatch(p.schema, cols, int64(rows))
}

// constant makes a column of one partition value.
func constant(v types.Value, t types.Type, rows int) arrow.Array {
	if v == nil {
		return kernels.Nulls(t.Arrow(), rows)
	}
	var sc scalar.Scalar
	switch t.Kind {
	case types.BigInt:
		sc = scalar.NewInt64Scalar(v.(int64))
	case types.Date:
		sc = scalar.NewDate32Scalar(arrow.Date32(v.(int64)))
	default:
		sc = scalar.NewStringScalar(v.(string))
	}
	// AIDEV-NOTE: panics only if a partition type without scalar is added above.
	a, err := scalar.MakeArrayFromScalar(sc, rows, memory.DefaultAllocator)
	if err != nil {
		panic(errs.Bug("read partitions", "%w", err))
	}
	return a
}
