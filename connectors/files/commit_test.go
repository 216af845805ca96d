package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/objstore/objtest"
	"github.com/riverbed/riverbed/core/types"
)

// lines is a format of one number a line.
var lines = SinkFormat{Name: "the lines sink", Extensions: []string{".txt"}, New: func(w io.Writer, _ []types.Field) (Encoder, error) { return lineEncoder{w}, nil }}

type lineEncoder struct{ w io.Writer }

func (e lineEncoder) Write(cols []arrow.Array, rows int) error {
	for i := range rows {
		if _, err := fmt.Fprintln(e.w, cols[0].ValueStr(i)); err != nil {
			return err
		}
	}
	return nil
}

func (e lineEncoder) Close() error { return nil }

var lineFields = []types.Field{{Name: "v", Type: types.Int64}, {Name: "k", Type: types.Int64}}

func lineWriter(t *testing.T, store objstore.Store, options map[string]string) (*committer, error) {
	t.Helper()
	given := map[string]string{"path": "/out"}
	maps.Copy(given, options)
	set, err := SinkOptions.Parse("the sink", given)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWriter(t.Context(), store, "/out", connectors.SinkRequest{Settings: set, Fields: lineFields, Pipeline: "p", ExactlyOnce: true}, lines)
	if err != nil {
		return nil, err
	}
	return w.(*committer), nil
}

// numbers are a delta of v from..to-1 and k = v % 2.
func numbers(from, to int) flow.Delta {
	b := array.NewRecordBuilder(memory.DefaultAllocator, types.ArrowSchema(lineFields))
	for i := from; i < to; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.Int64Builder).Append(int64(i % 2))
	}
	return flow.Delta{Batch: b.NewRecordBatch()}
}

// pipeline is what the engine does with a sink: it commits what its checkpoint names, writes, stages, checkpoints, commits.
type pipeline struct {
	store   *objstore.Double
	options map[string]string
	epochs  int
	perStep int

	// the checkpoint, which no fault touches
	epoch   int
	done    connectors.Marker
	pending []connectors.StagedEpoch
}

// life runs one process until it ends or the store ends it.
func (p *pipeline) life(t *testing.T) error {
	ctx := t.Context()
	c, err := lineWriter(t, p.store, p.options)
	if err != nil {
		return err
	}
	first := connectors.Marker("")
	if p.done == "r:0" && len(p.pending) == 0 {
		first = p.done
	}
	marker, err := c.Begin(ctx, first)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(p.pending, func(e connectors.StagedEpoch) bool { return e.Marker == marker })
	if at < 0 && marker != p.done {
		t.Fatalf("the sink holds %q, the checkpoint knows %q and %v", marker, p.done, p.pending)
	}
	for len(p.pending) > 0 {
		if err := p.commit(ctx, c); err != nil {
			return err
		}
	}
	for p.epoch < p.epochs {
		from := p.epoch * p.perStep
		for i := range 2 { // two steps an epoch
			if err := c.Write(ctx, numbers(from+i*p.perStep/2, from+(i+1)*p.perStep/2)); err != nil {
				return err
			}
		}
		staged, err := c.Stage(ctx, flow.Epoch(p.epoch+1))
		if err != nil {
			return err
		}
		p.epoch++
		p.pending = append(p.pending, connectors.StagedEpoch{Epoch: flow.Epoch(p.epoch), Marker: connectors.Marker(fmt.Sprintf("r:%d", p.epoch)), Previous: p.last(), Committable: staged})
		if err := p.commit(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (p *pipeline) last() connectors.Marker {
	if n := len(p.pending); n > 0 {
		return p.pending[n-1].Marker
	}
	return p.done
}

// commit tries as the engine does: what is transient once more.
func (p *pipeline) commit(ctx context.Context, c *committer) error {
	err := c.Commit(ctx, p.pending[0])
	if err != nil {
		return err
	}
	p.done, p.pending = p.pending[0].Marker, p.pending[1:]
	return nil
}

// seen reads what a client sees that lists the folder.
func seen(t *testing.T, d *objstore.Double) (rows []string, names []string) {
	t.Helper()
	found, err := d.Glob(t.Context(), "/out/**/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		text, err := objstore.Get(t.Context(), d, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, strings.Fields(string(text))...)
		names = append(names, strings.TrimPrefix(f.Name, "/out/"))
	}
	return rows, names
}

// check: each row once, in the files that the manifest names, and nothing left over.
func (p *pipeline) check(t *testing.T) {
	t.Helper()
	p.store.Plan = nil
	rows, names := seen(t, p.store)
	count := map[string]int{}
	for _, r := range rows {
		count[r]++
	}
	for i := range p.epochs * p.perStep {
		if n := count[fmt.Sprint(i)]; n != 1 {
			t.Errorf("row %d is there %d times", i, n)
		}
	}
	if len(rows) != p.epochs*p.perStep {
		t.Errorf("%d rows instead of %d", len(rows), p.epochs*p.perStep)
	}
	entries, err := p.store.Glob(t.Context(), "/out/_riverbed/p/*.commit")
	if err != nil || len(entries) != p.epochs+1 {
		t.Fatalf("%d entries for %d epochs, %v", len(entries), p.epochs, err)
	}
	var named []string
	for n, e := range entries {
		text, err := objstore.Get(t.Context(), p.store, e.Name)
		if err != nil {
			t.Fatal(err)
		}
		var got entry
		if err := json.Unmarshal(text, &got); err != nil || string(got.Marker) != fmt.Sprintf("r:%d", n) {
			t.Errorf("entry %d: %s, %v", n, text, err)
		}
		for _, f := range got.Files {
			named = append(named, f.Path)
		}
	}
	slices.Sort(named)
	slices.Sort(names)
	if !slices.Equal(named, names) {
		t.Errorf("the manifest names %v, the folder has %v", named, names)
	}
	if left, err := p.store.ListStaged(t.Context(), "/out"); len(left) != 0 || err != nil {
		t.Errorf("left over %v, %v", left, err)
	}
}

func newPipeline(options map[string]string) *pipeline {
	return &pipeline{store: objstore.NewDouble(), options: options, epochs: 3, perStep: 6, done: "r:0"}
}

// TestCommitsOnceWhateverEnds lets the store end the process at every operation in turn, before or after it was done, and again at every later one.
func TestCommitsOnceWhateverEnds(t *testing.T) {
	for name, options := range map[string]map[string]string{"a file an epoch": nil, "several, in folders": {"file_rows": "2", "partition_by": "k"}} {
		t.Run(name, func(t *testing.T) {
			calm := newPipeline(options)
			if err := calm.life(t); err != nil {
				t.Fatal(err)
			}
			ops := calm.store.Ops()
			calm.check(t)
			for at := 1; at <= ops; at++ {
				for _, fault := range []objstore.Fault{objstore.Fail, objstore.Ambiguous} {
					for again := 0; again <= ops; again += 1 + ops/25 {
						p := newPipeline(options)
						p.store.Plan = func(n int, _, _ string) objstore.Fault {
							if n == at || again > 0 && n == at+again {
								return fault
							}
							return objstore.NoFault
						}
						for lives := 0; ; lives++ {
							err := p.life(t)
							if err == nil {
								break
							}
							if e := errs.As(err); !e.Transient || lives > 2 {
								t.Fatalf("operation %d and %d later, fault %d: %v", at, again, fault, err)
							}
							p.store.Crash()
						}
						p.store.Plan = nil
						p.epochs++ // what was left over goes with the next epoch's commit
						if err := p.life(t); err != nil {
							t.Fatal(err)
						}
						if p.check(t); t.Failed() {
							t.Fatalf("operation %d and %d later, fault %d", at, again, fault)
						}
					}
				}
			}
		})
	}
}

// A retry in the same process finds what it has done.
func TestCommitIsTriedAgain(t *testing.T) {
	for at := 1; at < 40; at++ {
		p := newPipeline(map[string]string{"file_rows": "2"})
		c, err := lineWriter(t, p.store, p.options)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Begin(t.Context(), "r:0"); err != nil {
			t.Fatal(err)
		}
		if err := c.Write(t.Context(), numbers(0, 6)); err != nil {
			t.Fatal(err)
		}
		staged, err := c.Stage(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		before := p.store.Ops()
		p.store.Plan = func(n int, _, _ string) objstore.Fault {
			if n == before+at {
				return objstore.Ambiguous
			}
			return objstore.NoFault
		}
		e := connectors.StagedEpoch{Epoch: 1, Marker: "r:1", Previous: "r:0", Committable: staged}
		for range 3 { // and once more than needed
			if err := c.Commit(t.Context(), e); err != nil && !errs.As(err).Transient {
				t.Fatal(err)
			}
		}
		p.epochs = 1
		p.check(t)
	}
}

func TestCommitRefuses(t *testing.T) {
	d := objstore.NewDouble()
	c, err := lineWriter(t, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := c.Begin(t.Context(), "r:0"); m != "r:0" || err != nil {
		t.Fatal(m, err)
	}
	refused := func(e connectors.StagedEpoch, says string) {
		t.Helper()
		if err := c.Commit(t.Context(), e); !errs.Is(err, errs.ExactlyOnce) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v", err)
		}
	}
	refused(connectors.StagedEpoch{Epoch: 2, Marker: "r:2", Previous: "r:1"}, `holds the marker "r:0" of the pipeline "p", and "r:1" was to be the last`)
	if err := c.Write(t.Context(), numbers(0, 3)); err != nil {
		t.Fatal(err)
	}
	staged, err := c.Stage(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	e := connectors.StagedEpoch{Epoch: 1, Marker: "r:1", Previous: "r:0", Committable: staged}
	left, _ := d.ListStaged(t.Context(), "/out")
	for _, s := range left {
		_ = d.Discard(t.Context(), s)
	}
	refused(e, "that epoch 1 staged is gone, and so its 3 rows")

	// Another process has gone on.
	other, err := lineWriter(t, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := other.Begin(t.Context(), ""); m != "r:0" || err != nil {
		t.Fatal(m, err)
	}
	if err := other.Commit(t.Context(), connectors.StagedEpoch{Epoch: 1, Marker: "other:1", Previous: "r:0"}); err != nil {
		t.Fatal(err)
	}
	refused(connectors.StagedEpoch{Epoch: 1, Marker: "r:1", Previous: "r:0"}, `holds the marker "other:1"`)

	// The newest of many entries is found.
	for n := 2; n < 40; n++ {
		if err := other.Commit(t.Context(), connectors.StagedEpoch{Marker: connectors.Marker(fmt.Sprint(n)), Previous: other.marker}); err != nil {
			t.Fatal(err)
		}
		fresh, err := lineWriter(t, d, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := fresh.Begin(t.Context(), ""); m != connectors.Marker(fmt.Sprint(n)) || err != nil {
			t.Fatal(n, m, err)
		}
	}
	if err := objstore.Put(t.Context(), d, other.entryName(39), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	fresh, err := lineWriter(t, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Begin(t.Context(), ""); !errs.Is(err, errs.ExactlyOnce) {
		t.Errorf("a broken entry: %v", err)
	}
}

// A writer that ends drops what nobody was told of, and leaves what somebody else has staged.
func TestCloseAndBeginDrop(t *testing.T) {
	d := objstore.NewDouble()
	open := func() *committer {
		c, err := lineWriter(t, d, map[string]string{"file_rows": "2"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Begin(t.Context(), "r:0"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	staged := func() int {
		left, err := d.ListStaged(t.Context(), "/out")
		if err != nil {
			t.Fatal(err)
		}
		return len(left)
	}
	old := open()
	if err := old.Write(t.Context(), numbers(0, 5)); err != nil || staged() != 2 {
		t.Fatal(staged(), err)
	}
	fenced := open() // begins while the old one's files are there
	later := open()
	if err := errors.Join(fenced.Write(t.Context(), numbers(0, 2)), later.Write(t.Context(), numbers(0, 2))); err != nil {
		t.Fatal(err)
	}
	next, err := later.Stage(t.Context(), 1)
	if err != nil || staged() != 4 {
		t.Fatal(staged(), err)
	}
	if err := later.Commit(t.Context(), connectors.StagedEpoch{Epoch: 1, Marker: "r:1", Previous: "r:0", Committable: next}); err != nil || staged() != 1 {
		t.Errorf("%d are staged, %v", staged(), err)
	}
	if err := fenced.Close(); err != nil || staged() != 0 {
		t.Errorf("%d are staged, %v", staged(), err)
	}
}

func TestSinkOptions(t *testing.T) {
	for path, c := range map[string]struct {
		options map[string]string
		exactly bool
		kind    errs.Kind
		says    string
	}{
		"/out/x.txt":  {nil, true, errs.ExactlyOnce, `name a directory, which gets a file for each epoch: "/out/x"`},
		"/out/y.txt":  {map[string]string{"file_rows": "1"}, false, errs.Usage, "are for directories"},
		"/out/folder": {map[string]string{"partition_by": "w"}, false, errs.Schema, `names "w", which is no column`},
		"/out/all":    {map[string]string{"partition_by": "v,k"}, false, errs.Schema, "names all columns"},
	} {
		given := map[string]string{"path": path}
		maps.Copy(given, c.options)
		set, err := SinkOptions.Parse("the sink", given)
		if err != nil {
			t.Fatal(err)
		}
		_, err = newWriter(t.Context(), objstore.NewDouble(), path, connectors.SinkRequest{Settings: set, Fields: lineFields, ExactlyOnce: c.exactly}, lines)
		if !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// An entry of the manifest that may be lost with the power is not the sink's marker yet: the engine would forget how to commit its epoch.
func TestAnEntryThatMayBeLostDoesNotCount(t *testing.T) {
	ctx, e := t.Context(), &objtest.Early{Double: objstore.NewDouble(), Failing: true}
	begin := func() (connectors.Marker, error) {
		c, err := lineWriter(t, e, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Begin(ctx, "r:0")
	}
	for range 2 { // the entry is there from the first attempt on
		if m, err := begin(); !errors.Is(err, objtest.ErrDisk) {
			t.Fatalf("the marker is %q: %v", m, err)
		}
	}
	e.Failing = false
	if m, err := begin(); m != "r:0" || err != nil || len(e.Keeps) != 1 {
		t.Fatalf("the marker is %q: %v; kept are %v", m, err, e.Keeps)
	}
}
