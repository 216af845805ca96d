package main

import (
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
)

const benchRows = 65536

// wide makes a batch of ten int64 columns and two of text.
func wide(mem memory.Allocator) arrow.RecordBatch {
	var fields []arrow.Field
	var cols []arrow.Array
	for i := range 10 {
		b := array.NewInt64Builder(mem)
		b.Reserve(benchRows)
		for j := range benchRows {
			b.UnsafeAppend(int64(i + j))
		}
		cols = append(cols, b.NewArray())
		fields = append(fields, arrow.Field{Name: strconv.Itoa(i), Type: arrow.PrimitiveTypes.Int64})
		b.Release()
	}
	for i := range 2 {
		b := array.NewStringBuilder(mem)
		b.Reserve(benchRows)
		for j := range benchRows {
			b.Append(strconv.Itoa(j))
		}
		cols = append(cols, b.NewArray())
		fields = append(fields, arrow.Field{Name: "s" + strconv.Itoa(i), Type: arrow.BinaryTypes.String})
		b.Release()
	}
	rec := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, benchRows)
	for _, c := range cols {
		c.Release()
	}
	return rec
}

func TestPinCountsGoToZero(t *testing.T) {
	rec := wide(memory.NewGoAllocator())
	before := pinned.bytes.Load()
	a, b := pinBatch(rec, nil), pinBatch(rec, nil)
	if got := pinned.bytes.Load() - before; got < 2*10*8*benchRows {
		t.Fatalf("two exports pin %d bytes", got)
	}
	if &a.Column(0).Data().Buffers()[1].Bytes()[0] != &rec.Column(0).Data().Buffers()[1].Bytes()[0] {
		t.Error("the export copied a Go buffer")
	}
	a.Release()
	b.Release()
	if got := pinned.bytes.Load(); got != before {
		t.Errorf("%d bytes stay pinned", got-before)
	}
}

func TestImportedMemoryKeepsItsOwner(t *testing.T) {
	mem := mallocator.NewMallocator()
	rec := wide(mem)
	rel, err := newRelation(rec.Schema(), []arrow.RecordBatch{rec})
	if err != nil {
		t.Fatal(err)
	}
	p := pinBatch(rel.batches[0], nil)
	if err := rel.close(); err != nil {
		t.Fatal(err)
	}
	if !array.Equal(p.Column(0), wide(memory.NewGoAllocator()).Column(0)) {
		t.Error("the import went while an export of it lived")
	}
	if mem.AllocatedBytes() == 0 {
		t.Error("the import was copied")
	}
	p.Release()
	if n := mem.AllocatedBytes(); n != 0 {
		t.Errorf("%d bytes of the import stay", n)
	}
}

// onHeap keeps what the tests name by its address: a goroutine's stack moves.
var onHeap [][]byte

func TestOwnerIsFoundInNestedRanges(t *testing.T) {
	var table importTable
	onHeap = [][]byte{make([]byte, 100), make([]byte, 10)}
	data, other := onHeap[0], onHeap[1]
	outer, inner := &importOwner{}, &importOwner{}
	outer.refs.Store(1)
	inner.refs.Store(1)
	table.add(outer, []importRange{rangeOf(data, outer)})
	table.add(inner, []importRange{rangeOf(data[10:20], inner)})
	for _, c := range []struct {
		at   []byte
		want []*importOwner
	}{
		{data, []*importOwner{outer}},
		{data[15:16], []*importOwner{outer, inner}},
		{data[50:60], []*importOwner{outer}},
		{other, nil},
	} {
		got := table.ownerOf(c.at)
		ok := got == nil && c.want == nil
		for _, w := range c.want {
			ok = ok || got == w
		}
		if !ok {
			t.Errorf("the owner of a part of %d bytes is another", len(c.at))
		}
	}
	table.remove(outer)
	if got := table.ownerOf(data[50:60]); got != nil {
		t.Error("a removed owner is found")
	}
	if got := table.ownerOf(data[15:16]); got != inner {
		t.Error("the owner that stays is not found")
	}
	table.remove(inner)
	if owners, bytes := table.size(); owners != 0 || bytes != 0 {
		t.Errorf("%d owners, %d bytes stay", owners, bytes)
	}
}

// Two imports share a buffer and one of them ends: between its last release and its leaving the table it is found, and
// must not be taken.
func TestAnOwnerThatEndsIsPassedOver(t *testing.T) {
	var table importTable
	data := make([]byte, 100)
	living, ending := &importOwner{}, &importOwner{}
	living.refs.Store(1)
	table.add(living, []importRange{rangeOf(data, living)})
	table.add(ending, []importRange{rangeOf(data[10:20], ending)})
	if got := table.ownerOf(data[15:16]); got != living {
		t.Error("the owner found is not the one that lives")
	}
	if n := living.refs.Load(); n != 2 {
		t.Errorf("the owner found has %d references, not its own and the caller's", n)
	}
	if n := ending.refs.Load(); n != 0 {
		t.Errorf("the owner that had ended has %d references", n)
	}
	living.refs.Store(0)
	if got := table.ownerOf(data[15:16]); got != nil {
		t.Error("an owner is found although all have ended")
	}
}

// The memory decision (docs/adr) rests on these three: what pinning costs, what a copy at the edge would, and what
// building on the C heap would.
func BenchmarkExportPinned(b *testing.B) {
	rec := wide(memory.NewGoAllocator())
	b.SetBytes(12 * 8 * benchRows)
	for b.Loop() {
		pinBatch(rec, nil).Release()
	}
}

func BenchmarkExportCopied(b *testing.B) {
	rec := wide(memory.NewGoAllocator())
	b.SetBytes(12 * 8 * benchRows)
	for b.Loop() {
		if _, err := toHeap(rec); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuildGoHeap(b *testing.B) {
	for b.Loop() {
		wide(memory.NewGoAllocator())
	}
}

func BenchmarkBuildCHeap(b *testing.B) {
	mem := mallocator.NewMallocator()
	for b.Loop() {
		wide(mem).Release()
	}
}

// A pushed batch is often a slice of a large table: only its rows are copied.
func TestHeapCopyOfASliceIsSmall(t *testing.T) {
	rec := wide(memory.NewGoAllocator())
	const from, to = 100, 110
	slice := rec.NewSlice(from, to)
	got, err := toHeap(slice)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range got.Columns() {
		if !array.Equal(c, slice.Column(i)) {
			t.Errorf("column %d is %v, not %v", i, c, slice.Column(i))
		}
		for _, b := range c.Data().Buffers() {
			if b != nil && b.Len() > 8*(to-from+1) {
				t.Errorf("column %d has a buffer of %d bytes for %d rows", i, b.Len(), to-from)
			}
		}
	}
}
