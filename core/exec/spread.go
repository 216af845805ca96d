package exec

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/spill"
)

const (
	fanBits = 5
	fan     = 1 << fanBits // parts of a spread

	// blockRows is how many rows a worker gathers before it parts them, so that each part gets some hundred.
	blockRows  = 64 << 10
	blockBytes = 8 << 20
)

// spread parts rows by the hash of their keys, so that each part can be worked on by itself: all rows of one key are in one
// part. The parts are in memory as long as the account gives, and from then on all of them in a file.
type spread struct {
	env    *Env
	acct   *account
	schema *arrow.Schema
	shift  uint // of the hash: each level takes other bits
	local  []spreading

	mu    sync.Mutex
	held  int64
	file  *spill.File // nil: in memory
	parts [fan]part
}

// part is the chunks of one part, in memory or in the file.
type part struct {
	batches []arrow.RecordBatch
	spans   []spill.Span
	rows    int
}

// spreading is what one worker has gathered.
type spreading struct {
	cols   [][]arrow.Array
	hashes []uint64
	bytes  int64
}

// newSpread parts the input of an operator that has the account of, and has one of its own.
func newSpread(env *Env, of *account, schema *arrow.Schema, workers int) *spread {
	acct := env.Memory.account(of.op, of.level)
	acct.set(0)
	return &spread{env: env, acct: acct, schema: schema, shift: uint(64 - fanBits*(of.level+1)), local: make([]spreading, workers)}
}

// add takes n rows of one worker, at least one. hashed are the arrays that say to which part they go.
func (s *spread) add(worker int, cols, hashed []arrow.Array, n int) error {
	l := &s.local[worker]
	at := len(l.hashes)
	l.hashes = append(l.hashes, make([]uint64, n)...)
	kernels.HashColumns(hashed, n, l.hashes[at:])
	l.cols = append(l.cols, cols)
	for _, c := range cols {
		l.bytes += arrayBytes(c.Data())
	}
	if len(l.hashes) < blockRows && l.bytes < blockBytes {
		return nil
	}
	return s.flush(l)
}

// flush parts what a worker has gathered.
func (s *spread) flush(l *spreading) error {
	n := len(l.hashes)
	if n == 0 {
		return nil
	}
	var ends [fan]int32
	for _, h := range l.hashes {
		ends[h>>s.shift&(fan-1)]++
	}
	sum := int32(0)
	for p, k := range ends {
		ends[p], sum = sum, sum+k
	}
	order := make([]int32, n)
	for row, h := range l.hashes {
		p := h >> s.shift & (fan - 1)
		order[ends[p]] = int32(row)
		ends[p]++
	}
	cols := make([]arrow.Array, s.schema.NumFields())
	same := make([]arrow.Array, len(l.cols))
	for c := range cols {
		for i, m := range l.cols {
			same[i] = m[c]
		}
		cols[c] = kernels.Take(kernels.Concat(same), order)
	}
	clear(l.cols)
	l.cols, l.hashes, l.bytes = l.cols[:0], l.hashes[:0], 0
	block := array.NewRecordBatch(s.schema, cols, int64(n))
	keep, err := s.keep(batchBytes(block))
	if err != nil {
		return err
	}
	from := int32(0)
	for p, to := range ends {
		if from == to {
			continue
		}
		chunk := block.NewSlice(int64(from), int64(to))
		if err := s.put(p, chunk, keep); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// put adds a chunk to a part; keep says that its memory was granted.
func (s *spread) put(p int, chunk arrow.RecordBatch, keep bool) error {
	if !keep {
		span, err := s.file.Write(chunk)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.parts[p].spans = append(s.parts[p].spans, span)
		s.parts[p].rows += int(chunk.NumRows())
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[p].rows += int(chunk.NumRows())
	if s.file == nil {
		s.parts[p].batches = append(s.parts[p].batches, chunk)
		return nil
	}
	span, err := s.file.Write(chunk) // another worker has begun the file meanwhile
	s.parts[p].spans = append(s.parts[p].spans, span)
	return err
}

// keep asks for the memory of a block. When there is none, all that is held goes to the file, which it makes.
func (s *spread) keep(size int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		return false, nil
	}
	if s.acct.set(s.held + size) {
		s.held += size
		return true, nil
	}
	if s.env.Spill == nil {
		s.held += size
		return true, s.acct.must(s.held)
	}
	return false, s.evict()
}

// evict sends all that is held, and all that comes, to the file. The spread is locked.
func (s *spread) evict() (err error) {
	if s.file, err = s.env.Spill.Create(); err != nil {
		return err
	}
	for p := range s.parts {
		t := &s.parts[p]
		for _, b := range t.batches {
			span, err := s.file.Write(b)
			if err != nil {
				return err
			}
			t.spans = append(t.spans, span)
		}
		t.batches = nil
	}
	s.held = 0
	s.acct.set(0)
	return nil
}

// finish parts the rest of all workers.
func (s *spread) finish() error {
	for w := range s.local {
		if err := s.flush(&s.local[w]); err != nil {
			return err
		}
	}
	s.local = nil
	return nil
}

// close drops all parts.
func (s *spread) close() error {
	if s == nil {
		return nil
	}
	s.acct.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.parts {
		s.parts[p] = part{}
	}
	if s.file != nil {
		return s.file.Close()
	}
	return nil
}

// reader hands out the rows of one part. It may be read once, by any number of workers.
func (s *spread) reader(p int) Operator { return &partReader{s: s, part: &s.parts[p]} }

type partReader struct {
	s    *spread
	part *part
	next atomic.Int64
}

func (r *partReader) Schema() *arrow.Schema { return r.s.schema }
func (r *partReader) Close() error          { return nil }

func (r *partReader) Next(ctx context.Context, _ int) (*flow.Morsel, error) {
	i := r.next.Add(1) - 1
	b, err := r.part.chunk(r.s.file, int(i))
	if err != nil || b == nil {
		return nil, err
	}
	return &flow.Morsel{Seq: i, Batch: b}, ctx.Err()
}

// chunk is the i-th chunk of a part, nil behind the last.
func (p *part) chunk(f *spill.File, i int) (arrow.RecordBatch, error) {
	if i < len(p.batches) {
		return p.batches[i], nil
	}
	if i -= len(p.batches); i < len(p.spans) {
		return f.Read(p.spans[i])
	}
	return nil, nil
}

// spreadAll reads an input to its end into a spread. keys are computed from the input's columns and say which part.
func spreadAll(ctx context.Context, op Operator, workers int, keys *expr.Program, s *spread) error {
	err := drain(ctx, op, workers, func(w int, m *flow.Morsel) error {
		return s.addKeyed(w, m, keys)
	})
	if err != nil {
		return err
	}
	return s.finish()
}

func (s *spread) addKeyed(w int, m *flow.Morsel, keys *expr.Program) error {
	cols, n := m.Batch.Columns(), int(m.Batch.NumRows())
	if keys == nil { // by the whole row
		return s.add(w, cols, cols, n)
	}
	hashed, err := keys.EvalArrays(s.env.Fn, cols, n)
	if err != nil {
		return err
	}
	return s.add(w, cols, hashed, n)
}

// parted hands out what an operator makes of each part, part by part. Each worker works on parts of its own.
type parted struct {
	// over makes the operator over a part, nil when it would give nothing.
	over  func(part int) (Operator, error)
	parts int
	next  atomic.Int64
	seq   atomic.Int64
	now   []Operator // per worker
}

func newParted(workers, parts int, over func(part int) (Operator, error)) *parted {
	return &parted{over: over, parts: parts, now: make([]Operator, workers)}
}

func (p *parted) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		op := p.now[worker]
		if op == nil {
			i := p.next.Add(1) - 1
			if i >= int64(p.parts) {
				return nil, nil
			}
			var err error
			if op, err = p.over(int(i)); err != nil {
				return nil, err
			}
			if op == nil {
				continue
			}
			p.now[worker] = op
		}
		m, err := op.Next(ctx, 0)
		if err != nil {
			return nil, err
		}
		if m != nil {
			return &flow.Morsel{Seq: p.seq.Add(1), Batch: m.Batch}, nil
		}
		p.now[worker] = nil
		if err := op.Close(); err != nil {
			return nil, err
		}
	}
}

// Close ends the parts that were not read to their end.
func (p *parted) Close() (err error) {
	if p == nil {
		return nil
	}
	for w, op := range p.now {
		if op != nil {
			if e := op.Close(); err == nil {
				err = e
			}
			p.now[w] = nil
		}
	}
	return err
}

// deeper is the environment of an operator over a part: the part is one worker's.
func deeper(env *Env) *Env {
	e := *env
	e.Workers, e.Profile = 1, nil
	return &e
}
