package datafile

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// NewScan hands the row groups of so many files of a table to workers, in the order of the files. fields are the table's columns. A file is opened,
// with its rows that stand, when its turn comes.
func NewScan(req flow.ScanRequest, fields []types.Field, count int, open func(ctx context.Context, file int) (*File, Picks, error)) flow.Scan {
	if req.BatchRows <= 0 {
		req.BatchRows = files.DefaultBatchRows
	}
	out := make([]types.Field, len(req.Columns))
	for i, c := range req.Columns {
		out[i] = fields[c]
	}
	s := &scan{req: req, schema: types.ArrowSchema(out), open: open, files: count, workers: make([]worker, max(req.Workers, 1))}
	s.opened = sync.NewCond(&s.mu)
	return s
}

type scan struct {
	req     flow.ScanRequest
	schema  *arrow.Schema
	open    func(ctx context.Context, file int) (*File, Picks, error)
	files   int
	workers []worker

	mu      sync.Mutex
	opened  *sync.Cond
	next    int    // of the files, not opened yet
	opening int    // files that workers are opening
	ready   []task // row groups
}

// task is a row group that is to be read.
type task struct {
	src   *File
	picks Picks
	file  int // in scan order
	unit  int
}

type worker struct {
	unit *Unit
	seq  int64
	_    [64]byte // workers write their entries all the time; keep them on lines of their own
}

// The number of a morsel: its file, its row group, its batch.
const (
	batchBits = 20
	unitBits  = 20
)

func (s *scan) Next(ctx context.Context, number int) (*flow.Morsel, error) {
	w := &s.workers[number]
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if w.unit == nil {
			t, ok, err := s.take(ctx)
			if !ok || err != nil {
				return nil, err
			}
			w.seq = int64(t.file)<<(batchBits+unitBits) | int64(t.unit)<<batchBits
			w.unit, err = t.src.Project(s.req.Columns, s.schema).Open(ctx, Request{Unit: t.unit, Picks: t.picks, BatchRows: s.req.BatchRows, Narrow: s.req.Narrow, Worker: number, Room: s.req.Room})
			if err != nil {
				w.unit = nil
				return nil, err
			}
		}
		b, records, err := w.unit.Next(ctx)
		if errors.Is(err, io.EOF) {
			w.unit.Close()
			w.unit = nil
			continue
		}
		if err != nil {
			return nil, err
		}
		if b.NumRows() == 0 {
			continue
		}
		m := &flow.Morsel{Seq: w.seq, Batch: b, Narrowed: w.unit.Narrowed}
		if s.req.Places {
			m.Places = w.unit.Places(records)
		}
		w.seq++
		return m, nil
	}
}

// take gives a worker its next row group; ok is false at the end. While files are opened their row groups are waited for, so that
// workers share those of a single file.
func (s *scan) take(ctx context.Context) (t task, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case len(s.ready) > 0:
			t, s.ready = s.ready[0], s.ready[1:]
			return t, true, nil
		case s.next < s.files:
			at := s.next
			s.next++
			s.opening++
			s.mu.Unlock()
			tasks, err := s.tasks(ctx, at)
			s.mu.Lock()
			s.opening--
			s.ready = append(s.ready, tasks...)
			s.opened.Broadcast()
			if err != nil {
				return task{}, false, err
			}
		case s.opening > 0:
			s.opened.Wait()
		default:
			return task{}, false, nil
		}
	}
}

// tasks are the row groups of a file that may match.
func (s *scan) tasks(ctx context.Context, at int) ([]task, error) {
	src, picks, err := s.open(ctx, at)
	if err != nil {
		return nil, err
	}
	var out []task
	for u := range src.Units() {
		if rows, _ := src.Unit(u); rows > 0 && src.CanMatch(u, s.req.Filters) {
			out = append(out, task{src, picks, at, u})
		}
	}
	return out, nil
}

func (s *scan) Close() error {
	for i := range s.workers {
		if u := s.workers[i].unit; u != nil {
			u.Close()
		}
	}
	return nil
}
