package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	riverbed "github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/connectors/memory"
	"github.com/riverbed/riverbed/core/types"
)

// nexmarkEvents is the number of events of all three streams, nexmarkBatch the rows of a push.
const (
	nexmarkEvents = 2_000_000
	nexmarkBatch  = 10_000
)

// nexmarkShare is how many of 50 events are of a stream.
var nexmarkShare = map[string]int{"person": 1, "auction": 3, "bid": 46}

// piece is one push.
type piece struct {
	stream string
	at     int64 // event time of its first row
	rows   arrow.RecordBatch
}

// nexmark is the events of a run.
type nexmark struct {
	pieces  []piece // in the order of their first rows
	schemas map[string]*arrow.Schema
	side    *riverbed.ArrowTable
}

// query runs a statement and returns its batches.
func query(b *testing.B, s *riverbed.Session, text string) (*arrow.Schema, []arrow.RecordBatch) {
	b.Helper()
	ctx := context.Background()
	q, err := s.Query(ctx, text, nil)
	if err != nil {
		b.Fatal(err)
	}
	r, err := q.Run(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Release()
	var out []arrow.RecordBatch
	for r.Next() {
		out = append(out, r.RecordBatch())
	}
	if r.Err() != nil {
		b.Fatal(r.Err())
	}
	return r.Schema(), out
}

func open(b *testing.B) *riverbed.Session {
	s, err := riverbed.Open(map[string]string{"parallelism": "1"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func newNexmark(b *testing.B) *nexmark {
	s := open(b)
	n := &nexmark{schemas: map[string]*arrow.Schema{}}
	for stream, share := range nexmarkShare {
		if _, err := s.Query(context.Background(), fmt.Sprintf("CREATE TABLE %s WITH (connector = 'generator', kind = 'nexmark_%[1]s', rows = %d, seed = 1)",
			stream, nexmarkEvents*share/50), nil); err != nil {
			b.Fatal(err)
		}
		schema, batches := query(b, s, "SELECT * FROM "+stream)
		n.schemas[stream] = schema
		for _, rows := range batches {
			times := rows.Column(schema.FieldIndices("dateTime")[0]).(*array.Timestamp)
			for from := int64(0); from < rows.NumRows(); from += nexmarkBatch {
				n.pieces = append(n.pieces, piece{stream, int64(times.Value(int(from))), rows.NewSlice(from, min(rows.NumRows(), from+nexmarkBatch))})
			}
		}
	}
	slices.SortStableFunc(n.pieces, func(a, b piece) int { return int(a.at - b.at) })
	schema, rows := query(b, s, "SELECT range AS key, 'value-' || range AS value FROM range(10000)")
	var err error
	if n.side, err = riverbed.NewArrowTable(schema, rows); err != nil {
		b.Fatal(err)
	}
	return n
}

// subscribe pushes all that the question reads and reads what it shows.
func (n *nexmark) subscribe(b *testing.B, text string) (events, changes int) {
	ctx := context.Background()
	s := open(b)
	streams := map[string]*memory.Stream{}
	for name, schema := range n.schemas {
		fields, err := types.Schema(schema)
		if err != nil {
			b.Fatal(err)
		}
		streams[name] = memory.New(fields, memory.Options{})
		if err := s.AddStream(name, streams[name], "dateTime - INTERVAL '4 seconds'", "dateTime"); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Register("side", n.side); err != nil {
		b.Fatal(err)
	}
	q, err := s.Query(ctx, text, nil)
	if err != nil {
		b.Fatal(err)
	}
	sub, err := q.Subscribe(ctx, riverbed.SubscribeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	reads := regexp.MustCompile(`(?i)\b(from|join)\s+(person|auction|bid)\b`).FindAllStringSubmatch(text, -1)
	used := map[string]bool{}
	for _, m := range reads {
		used[m[2]] = true
	}
	pushed := make(chan error, 1)
	go func() {
		for _, p := range n.pieces {
			if used[p.stream] {
				events += int(p.rows.NumRows())
				if err := streams[p.stream].Push(ctx, "", p.rows, nil); err != nil {
					pushed <- err
					return
				}
			}
		}
		for _, st := range streams {
			st.Close()
		}
		pushed <- nil
	}()
	for {
		d, err := sub.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		changes += d.Rows()
	}
	if err := <-pushed; err != nil {
		b.Fatal(err)
	}
	return events, changes
}

// batch answers the question over all events at once.
func (n *nexmark) batch(b *testing.B, text string) (rows int) {
	s := open(b)
	for name, schema := range n.schemas {
		var batches []arrow.RecordBatch
		for _, p := range n.pieces {
			if p.stream == name {
				batches = append(batches, p.rows)
			}
		}
		table, err := riverbed.NewArrowTable(schema, batches)
		if err == nil {
			err = s.Register(name, table)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Register("side", n.side); err != nil {
		b.Fatal(err)
	}
	_, out := query(b, s, text)
	for _, r := range out {
		rows += int(r.NumRows())
	}
	return rows
}

// BenchmarkNexmark runs the questions incrementally, events pushed and changes read in this process, and as batch.
func BenchmarkNexmark(b *testing.B) {
	paceCollector()
	text, err := os.ReadFile("../../../bench/nexmark/queries.sql")
	if err != nil {
		b.Fatal(err)
	}
	n := newNexmark(b)
	for _, part := range regexp.MustCompile(`(?m)^-- name: `).Split(string(text), -1)[1:] {
		name, sql, _ := strings.Cut(part, "\n")
		sql = strings.TrimSuffix(strings.TrimSpace(sql), ";")
		b.Run(name, func(b *testing.B) {
			events := 0
			for _, mode := range []string{"incremental", "batch"} {
				b.Run(mode, func(b *testing.B) {
					runtime.GC()
					rows, start := 0, cpu(b)
					for b.Loop() {
						if mode == "batch" {
							rows = n.batch(b, sql)
						} else {
							events, rows = n.subscribe(b, sql)
						}
					}
					if events > 0 {
						b.ReportMetric((cpu(b)-start)/float64(b.N)/float64(events)*1e6, "cpu-s/Mevents")
						b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
					}
					b.ReportMetric(float64(rows), "rows")
				})
			}
		})
	}
}
