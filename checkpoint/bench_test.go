package checkpoint

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/state"
)

// groupRow is a row of a grouped aggregate of about 100 bytes: key, name, some sums and a time.
var groupRow = arrow.NewSchema([]arrow.Field{
	{Name: "_group", Type: arrow.PrimitiveTypes.Uint8},
	{Name: "_hash", Type: arrow.PrimitiveTypes.Uint64},
	{Name: "_key", Type: arrow.BinaryTypes.Binary},
	{Name: "_deleted", Type: arrow.FixedWidthTypes.Boolean},
	{Name: "user", Type: arrow.PrimitiveTypes.Int64},
	{Name: "name", Type: arrow.BinaryTypes.String},
	{Name: "n", Type: arrow.PrimitiveTypes.Int64},
	{Name: "sum", Type: arrow.PrimitiveTypes.Float64},
	{Name: "best", Type: arrow.PrimitiveTypes.Float64},
	{Name: "last", Type: arrow.PrimitiveTypes.Int64},
	{Name: "weight", Type: arrow.PrimitiveTypes.Int64},
}, nil)

// groupRows draws n different keys below most.
func groupRows(r *rand.Rand, n, most int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, groupRow)
	b.Reserve(n)
	seen := make(map[int]bool, n)
	for len(seen) < n {
		id := r.IntN(most)
		if seen[id] {
			continue
		}
		seen[id] = true
		hash := uint64(id) * 0x9e3779b97f4a7c15
		hash ^= hash >> 29
		b.Field(0).(*array.Uint8Builder).Append(uint8(kernels.KeyGroup(hash)))
		b.Field(1).(*array.Uint64Builder).Append(hash)
		b.Field(2).(*array.BinaryBuilder).Append(binary.BigEndian.AppendUint64([]byte{1}, uint64(id)))
		b.Field(3).(*array.BooleanBuilder).Append(false)
		b.Field(4).(*array.Int64Builder).Append(int64(id))
		b.Field(5).(*array.StringBuilder).Append("customer number " + string(rune('a'+id%26)) + string(rune('a'+id/26%26)))
		b.Field(6).(*array.Int64Builder).Append(int64(r.IntN(1000)))
		b.Field(7).(*array.Float64Builder).Append(r.Float64() * 1e6)
		b.Field(8).(*array.Float64Builder).Append(float64(r.IntN(100000)) / 100)
		b.Field(9).(*array.Int64Builder).Append(1700000000000000 + r.Int64N(1e9))
		b.Field(10).(*array.Int64Builder).Append(1)
	}
	return b.NewRecordBatch()
}

// none takes uploads and forgets them.
type none struct{ objstore.Store }

type nowhere struct{ objstore.Upload }

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Commit() error               { return nil }
func (nowhere) Abort() error                { return nil }

func (none) Create(context.Context, string) (objstore.Upload, error) {
	return nowhere{}, nil
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWrite is an epoch of 100,000 changed rows of about 100 bytes: sorted, encoded, and written to nowhere or to a local disk.
func BenchmarkWrite(b *testing.B) {
	rows := groupRows(rand.New(rand.NewPCG(1, 1)), 100_000, 10_000_000)
	for _, to := range []string{"nowhere", "local"} {
		b.Run(to, func(b *testing.B) {
			o := testOptions(none{objstore.NewDouble()}, clock.Wall{})
			if to == "local" {
				o.Objects, o.Dir = objstore.Local{}, b.TempDir()
			} else {
				o.ReadOnly = true // no lease
			}
			s, err := Open(context.Background(), o)
			if err != nil {
				b.Fatal(err)
			}
			s.o.ReadOnly = false
			size := int64(0)
			before := cpu()
			for b.Loop() {
				m := &Manifest{Epoch: 1}
				if err := s.Write(context.Background(), nil, m, []Section{Of("agg", state.Part{Table: "groups", Version: 1, Rows: rows})}); err != nil {
					b.Fatal(err)
				}
				size = m.Objects[0].Size
			}
			b.ReportMetric(float64(cpu()-before)/1e6/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(size)/1e5, "bytes/row")
		})
	}
}

// history is a million rows in a large object and some smaller ones of changes, on a local disk.
func history(b *testing.B) (*Store, *Manifest) {
	b.Helper()
	o := testOptions(objstore.Local{}, clock.Wall{})
	o.Dir = b.TempDir()
	s, err := Open(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	var m *Manifest
	for _, n := range []int{1_000_000, 100_000, 100_000, 100_000} {
		next := &Manifest{}
		if m != nil {
			next.Epoch = m.Epoch + 1
		}
		if err := s.Write(context.Background(), m, next, []Section{Of("agg", state.Part{Table: "groups", Version: 1, Rows: groupRows(r, n, 1_100_000)})}); err != nil {
			b.Fatal(err)
		}
		m = next
	}
	return s, m
}

// BenchmarkRead is what a restore does before tables take the rows: 1.3 million rows verified, decoded and merged to a million.
func BenchmarkRead(b *testing.B) {
	s, m := history(b)
	before := cpu()
	for b.Loop() {
		rows := int64(0)
		if err := s.Read(context.Background(), m, func(sec Section) error { rows += sec.Rows[0].NumRows(); return nil }); err != nil || rows < 1_000_000 {
			b.Fatal(rows, err)
		}
	}
	b.ReportMetric(float64(cpu()-before)/1e6/float64(b.N), "cpu-ms/op")
}

// BenchmarkMerge makes one object of the four. heap-MB is how far the heap grew.
func BenchmarkMerge(b *testing.B) {
	s, m := history(b)
	runtime.GC()
	var at, most runtime.MemStats
	runtime.ReadMemStats(&at)
	before := cpu()
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				var now runtime.MemStats
				if runtime.ReadMemStats(&now); now.HeapAlloc > most.HeapAlloc {
					most = now
				}
			}
		}
	}()
	for b.Loop() {
		if _, err := s.mergeObjects(context.Background(), "data/x-1-1.rbd", nil, m.Objects); err != nil {
			b.Fatal(err)
		}
	}
	close(stop)
	b.ReportMetric(float64(cpu()-before)/1e6/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(int64(most.HeapAlloc)-int64(at.HeapAlloc))/1e6, "heap-MB")
}
