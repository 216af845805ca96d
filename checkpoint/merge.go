package checkpoint

import (
	"context"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/objstore"
)

const (
	mergeAlike = 8  // neighbours of one size that are worth a merge
	mergeMost  = 16 // objects that are merged at once: each has a batch in memory
)

// merged is an object that stands for some neighbours.
type merged struct {
	inputs []string // names, oldest first
	object Object
}

// instead gives objects with the merged one in the place of its inputs; false when they are not there as they were. What the
// index of the inputs names no more is not named of the merged one either.
func (m *merged) instead(objects []Object) ([]Object, bool) {
	at := slices.IndexFunc(objects, func(o Object) bool { return o.Name == m.inputs[0] })
	if at < 0 || at+len(m.inputs) > len(objects) {
		return nil, false
	}
	named := map[sectionKey]bool{}
	for i, name := range m.inputs {
		if objects[at+i].Name != name {
			return nil, false
		}
		for _, s := range objects[at+i].Sections {
			named[s.key()] = true
		}
	}
	o := keepSections([]Object{m.object}, func(_ Object, s SectionIndex) bool { return named[s.key()] })
	return slices.Concat(objects[:at], o, objects[at+len(m.inputs):]), true
}

func (s SectionIndex) key() sectionKey { return sectionKey{s.Kind, s.Owner, s.Table, s.Version} }

// mergeable chooses neighbours [from, to) to be merged; none when from is to.
//
// All of them, when what is newer than the oldest is as much as it: so a restore reads at most twice the oldest object, and a row is rewritten
// so once for each time that as much as there is was changed. Otherwise the newest mergeAlike of a size, in which each older one is at most twice the average
// of those newer: so a row is rewritten once for each time that its object becomes eight times as large, and objects are few.
//
// Rows that are held for a sink are not merged: few epochs have them, and a commit finds them by the epoch of their object.
func mergeable(objects []Object) (from, to int) {
	sizes := make([]int64, len(objects))
	firstHeld, newer := len(objects), int64(0)
	for i, o := range objects {
		for _, s := range o.Sections {
			sizes[i] += s.Length
			if s.Kind == Once {
				firstHeld = min(firstHeld, i)
				sizes[i] = math.MaxInt64 / 4
				break
			}
		}
		if i > 0 && i < min(firstHeld, mergeMost) {
			newer += sizes[i]
		}
	}
	if all := min(firstHeld, mergeMost); all > 2 && newer >= sizes[0] {
		return 0, all
	}
	for to = len(objects); to >= mergeAlike; to-- {
		sum := int64(0)
		for from = to; from > 0 && to-from < mergeMost; from-- {
			size, n := sizes[from-1], int64(to-from)
			if size == math.MaxInt64/4 || n > 0 && size > 2*sum/n {
				break
			}
			sum += size
		}
		if to-from >= mergeAlike {
			return from, to
		}
	}
	return 0, 0
}

// merge makes one object of some neighbours of the newest manifest, for the next Write to name.
func (s *Store) merge(ctx context.Context) error {
	s.mu.Lock()
	m, busy := s.newest, s.merged != nil
	s.mu.Unlock()
	if m == nil || busy {
		return nil
	}
	from, to := mergeable(m.Objects)
	if from == to {
		return nil
	}
	inputs := m.Objects[from:to]
	name := s.newName(inputs[0].Epochs[0], inputs[len(inputs)-1].Epochs[1])
	object, err := s.mergeObjects(ctx, name, m.Objects[:from], inputs)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		delete(s.making, name)
		return err
	}
	s.merged = &merged{object: object}
	for _, o := range inputs {
		s.merged.inputs = append(s.merged.inputs, o.Name)
	}
	return nil
}

// input is a section that goes into a merge.
type input struct {
	file   objstore.File
	object Object
	at     SectionIndex
}

func (s *Store) mergeObjects(ctx context.Context, name string, older, inputs []Object) (Object, error) {
	tables, order, done, err := s.inputsOf(ctx, inputs)
	defer done()
	if err != nil {
		return Object{}, err
	}
	w, err := s.newObject(ctx, name, inputs[0].Epochs[0], inputs[len(inputs)-1].Epochs[1])
	if err != nil {
		return Object{}, err
	}
	defer w.abort()
	for i, k := range order {
		if err := s.mergeTable(ctx, w, tables[k], !k.hasOther(order[:i]) && !hasTable(older, k)); err != nil {
			return Object{}, err
		}
	}
	return w.commit()
}

// inputsOf opens objects and gives the sections of each table, oldest first.
func (s *Store) inputsOf(ctx context.Context, objects []Object) (tables map[sectionKey][]input, order []sectionKey, done func(), err error) {
	var files []objstore.File
	done = func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	tables = map[sectionKey][]input{}
	for _, o := range objects {
		f, err := s.open(ctx, o)
		if err != nil {
			return nil, nil, done, err
		}
		files = append(files, f)
		for _, at := range o.Sections {
			if tables[at.key()] == nil {
				order = append(order, at.key())
			}
			tables[at.key()] = append(tables[at.key()], input{f, o, at})
		}
	}
	return tables, order, done, nil
}

// hasTable reports whether objects have rows of a table, of any version.
func hasTable(objects []Object, k sectionKey) bool {
	return slices.ContainsFunc(objects, func(o Object) bool {
		return slices.ContainsFunc(o.Sections, func(s SectionIndex) bool { return s.Kind == k.kind && s.Owner == k.owner && s.Table == k.table })
	})
}

// mergeTable writes the sections of a table as one. Nothing of it is in older objects when it is oldest.
func (s *Store) mergeTable(ctx context.Context, w *objectWriter, in []input, oldest bool) error {
	last := in[len(in)-1]
	if last.at.Kind == Whole {
		return s.copySection(ctx, w, last)
	}
	if len(in) == 1 && !(oldest && last.at.Kind == State) {
		return s.copySection(ctx, w, last)
	}
	return s.runs(ctx, in, func(run []*sectionReader, first bool) error {
		rows := appended(run)
		if last.at.Kind == State {
			rows = mergedRows(run, oldest && first)
		}
		return w.section(last.at, run[0].schema(), func() (arrow.RecordBatch, error) {
			if ctx.Err() != nil {
				return nil, cancelled(ctx.Err())
			}
			return rows()
		})
	})
}

// runs opens sections of a table, oldest first, and hands on those together that have one schema: a new program may write a table of the same version
// otherwise, and then its rows stay apart.
func (s *Store) runs(ctx context.Context, in []input, each func(run []*sectionReader, first bool) error) error {
	var open []*sectionReader
	defer func() {
		for _, r := range open {
			r.close()
		}
	}()
	for _, one := range in {
		r, err := s.openSection(ctx, one.file, one.object, one.at)
		if err != nil {
			return err
		}
		open = append(open, r)
	}
	for from := 0; from < len(open); {
		to := from + 1
		for to < len(open) && open[to].schema().Equal(open[from].schema()) {
			to++
		}
		if err := each(open[from:to], from == 0); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// copySection copies a section as it is.
func (s *Store) copySection(ctx context.Context, w *objectWriter, in input) error {
	raw := rawSection(in.file, in.at)
	if err := w.copied(in.at, raw); err != nil {
		return err
	}
	if raw.failed != nil {
		return s.readFailed(ctx, in.object.Name, raw.failed)
	}
	if raw.n != in.at.Length || raw.sum.Sum32() != in.at.CRC {
		return corrupt(s.url(in.object.Name), "the checksum of its section of %s %s is %08x and not %08x", in.at.Owner, in.at.Table, raw.sum.Sum32(), in.at.CRC)
	}
	return nil
}

// appended gives the rows of sections one after the other, small batches put together.
func appended(in []*sectionReader) func() (arrow.RecordBatch, error) {
	var waiting []arrow.RecordBatch
	rows := int64(0)
	flush := func() arrow.RecordBatch {
		out := concatenated(waiting)
		waiting, rows = nil, 0
		return out
	}
	return func() (arrow.RecordBatch, error) {
		for len(in) > 0 {
			b, err := in[0].next()
			if err != nil {
				return nil, err
			}
			if b == nil {
				in = in[1:]
				continue
			}
			full := rows > 0 && rows+b.NumRows() > 1<<rowShift
			var out arrow.RecordBatch
			if full {
				out = flush()
			}
			waiting, rows = append(waiting, b), rows+b.NumRows()
			if full {
				return out, nil
			}
		}
		if rows == 0 {
			return nil, nil
		}
		return flush(), nil
	}
}

func concatenated(batches []arrow.RecordBatch) arrow.RecordBatch {
	if len(batches) == 1 {
		return batches[0]
	}
	cols := make([]arrow.Array, batches[0].NumCols())
	rows := int64(0)
	for i := range cols {
		parts := make([]arrow.Array, len(batches))
		for j, b := range batches {
			parts[j] = b.Column(i)
		}
		cols[i] = kernels.Concat(parts)
	}
	for _, b := range batches {
		rows += b.NumRows()
	}
	return array.NewRecordBatch(batches[0].Schema(), cols, rows)
}
