package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/state"
)

// bench is a store under test.
func testOptions(d objstore.Store, c clock.Clock) Options {
	return Options{Pipeline: "p", Clock: c, Rand: clock.NewRand(1), Version: "1.0", Inline: true, Objects: d, Dir: "/d"}
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// change is a row of a state table; a nil value deletes it.
type change struct {
	key   string
	value any
}

var rowSchema = arrow.NewSchema([]arrow.Field{
	{Name: "_group", Type: arrow.PrimitiveTypes.Uint8},
	{Name: "_hash", Type: arrow.PrimitiveTypes.Uint64},
	{Name: "_key", Type: arrow.BinaryTypes.Binary},
	{Name: "_deleted", Type: arrow.FixedWidthTypes.Boolean},
	{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
}, nil)

// groupOf spreads keys over few groups.
func groupOf(key string) uint8 {
	g := uint8(0)
	for _, c := range []byte(key) {
		g = g*31 + c
	}
	return g % 7 * 31
}

func rows(changes ...change) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, rowSchema)
	for _, c := range changes {
		b.Field(0).(*array.Uint8Builder).Append(groupOf(c.key))
		b.Field(1).(*array.Uint64Builder).Append(uint64(len(c.key)))
		b.Field(2).(*array.BinaryBuilder).Append([]byte(c.key))
		b.Field(3).(*array.BooleanBuilder).Append(c.value == nil)
		if c.value == nil {
			b.Field(4).AppendNull()
			b.Field(5).AppendNull()
		} else {
			b.Field(4).(*array.StringBuilder).Append(fmt.Sprint(c.value))
			b.Field(5).(*array.BooleanBuilder).Append(len(c.key)%2 == 0)
		}
	}
	return b.NewRecordBatch()
}

func stateOf(owner, table string, changes ...change) Section {
	return Of(owner, state.Part{Table: table, Version: 1, Rows: rows(changes...)})
}

// texts is a batch of one column, as logs and held rows are.
func texts(values ...string) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.BinaryTypes.String}}, nil))
	for _, v := range values {
		b.Field(0).(*array.StringBuilder).Append(v)
	}
	return b.NewRecordBatch()
}

// content is what a restore makes of a manifest.
type content struct {
	state map[string]string // owner/table/key → value
	lists map[string][]string
}

func contentOf(t *testing.T, s *Store, m *Manifest) content {
	t.Helper()
	c := content{map[string]string{}, map[string][]string{}}
	if m == nil {
		return c
	}
	if err := s.Read(context.Background(), m, c.add); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c content) add(s Section) error {
	at := fmt.Sprintf("%s/%s/%s", s.Kind, s.Owner, s.Table)
	if s.Kind == Whole {
		delete(c.lists, at)
	}
	for _, b := range s.Rows {
		for i := range int(b.NumRows()) {
			if s.Kind != State {
				c.lists[at] = append(c.lists[at], b.Column(0).(*array.String).Value(i))
				continue
			}
			key := s.Owner + "/" + s.Table + "/" + string(b.Column(2).(*array.Binary).Value(i))
			if b.Column(3).(*array.Boolean).Value(i) {
				delete(c.state, key)
			} else {
				c.state[key] = b.Column(4).(*array.String).Value(i)
			}
		}
	}
	return nil
}

func (c content) equal(d content) bool {
	return maps.Equal(c.state, d.state) && maps.EqualFunc(c.lists, d.lists, slices.Equal[[]string])
}

// epoch writes and publishes one, retrying as a pipeline does.
func epoch(t *testing.T, s *Store, prev *Manifest, change func(*Manifest), sections ...Section) *Manifest {
	t.Helper()
	m := &Manifest{Pipeline: "p", Run: "r"}
	if prev != nil {
		*m = *prev
		m.Epoch++
	}
	if change != nil {
		change(m)
	}
	ctx := context.Background()
	if err := s.Write(ctx, prev, m, sections); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(ctx, m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for name, objects := range map[string]objstore.Store{"double": objstore.NewDouble(), "local": objstore.Local{}} {
		t.Run(name, func(t *testing.T) {
			o := testOptions(objects, clock.NewFake(time.Unix(0, 0)))
			o.Dir = t.TempDir()
			s, ctx := open(t, o), context.Background()
			if m, err := s.Newest(ctx); m != nil || err != nil {
				t.Fatalf("the newest of none: %v, %v", m, err)
			}
			if m, err := s.Fence(ctx); m != nil || err != nil {
				t.Fatalf("a fence of none: %v, %v", m, err)
			}
			m := epoch(t, s, nil, nil)
			if len(m.Objects) != 0 {
				t.Fatalf("an empty epoch has objects: %v", m.Objects)
			}
			m = epoch(t, s, m, nil, stateOf("a", "t", change{"x", 1}, change{"y", 2}), stateOf("a", "t", change{"z", 3}), stateOf("b", "t"),
				Section{Kind: Log, Owner: "__late", Rows: []arrow.RecordBatch{texts("l1")}},
				Section{Kind: Whole, Owner: "pending", Rows: []arrow.RecordBatch{texts("p1", "p2")}},
				Section{Kind: Once, Owner: "sink", Rows: []arrow.RecordBatch{texts("h1")}})
			m = epoch(t, s, m, func(m *Manifest) {
				m.Sinks = []Sink{{Name: "sink", Pending: []Link{{Epoch: 1, Held: true}}}}
			}, stateOf("a", "t", change{"x", nil}, change{"y", 4}),
				Section{Kind: Log, Owner: "__late", Rows: []arrow.RecordBatch{texts("l2", "l3")}},
				Section{Kind: Whole, Owner: "pending"})
			want := content{map[string]string{"a/t/y": "4", "a/t/z": "3"},
				map[string][]string{"log/__late/": {"l1", "l2", "l3"}, "once/sink/": {"h1"}}}
			if got := contentOf(t, s, m); !got.equal(want) {
				t.Errorf("got %v", got)
			}
			held, err := s.ReadOnce(ctx, m, 1, "sink", "")
			if err != nil || len(held) != 1 || held[0].NumRows() != 1 {
				t.Errorf("held rows: %v, %v", held, err)
			}
			m = epoch(t, s, m, func(m *Manifest) { m.Sinks = nil })
			if _, err := s.ReadOnce(ctx, m, 1, "sink", ""); !errs.Is(err, errs.State) {
				t.Errorf("rows that are committed are still named: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}

			s = open(t, o)
			again, err := s.Newest(ctx)
			if err != nil || again.Epoch != 3 || again.Version != "1.0" || again.Fence != 1 {
				t.Fatalf("newest: %+v, %v", again, err)
			}
			delete(want.lists, "once/sink/")
			if got := contentOf(t, s, again); !got.equal(want) {
				t.Errorf("after a restart: %v", got)
			}
			fence, err := s.Fence(ctx)
			if err != nil || fence.Epoch != 4 || fence.Fence != 2 {
				t.Fatalf("fence: %+v, %v", fence, err)
			}
			if got := contentOf(t, s, fence); !got.equal(want) {
				t.Errorf("behind the fence: %v", got)
			}
			if epochs, err := s.Epochs(ctx); err != nil || !slices.Equal(epochs, []flow.Epoch{2, 3, 4}) {
				t.Errorf("epochs: %v, %v", epochs, err)
			}
		})
	}
}
