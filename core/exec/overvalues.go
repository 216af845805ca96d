package exec

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
)

// rank numbers rows, or runs of peers by the number of their first row, or one by one.
func (r *overRows) rank(name string, p *inPartitions) arrow.Array {
	out := make([]int64, r.rows)
	k := 0
	p.each(func(from, to int32, peers []int32) {
		base := int64(0)
		if r.bases != nil {
			base = r.bases[k]
			k++
		}
		if name == "row_number" {
			n := base
			for i := range out[from:to] {
				n++
				out[int(from)+i] = n
			}
			return
		}
		for k, first := range peers[:len(peers)-1] {
			n := int64(first-from) + 1 + base
			if name == "dense_rank" {
				n = int64(k) + 1
			}
			for i := first; i < peers[k+1]; i++ {
				out[i] = n
			}
		}
	})
	return kernels.NewFixed(arrow.PrimitiveTypes.Int64, out, nil)
}

// share is the rank, or the rows up to the last peer, as a share of the partition.
func (r *overRows) share(name string, p *inPartitions) arrow.Array {
	out := make([]float64, r.rows)
	p.each(func(from, to int32, peers []int32) {
		rows := float64(to - from)
		for k, first := range peers[:len(peers)-1] {
			x := float64(peers[k+1]-from) / rows
			if name == "percent_rank" {
				if x = 0; rows > 1 {
					x = float64(first-from) / (rows - 1)
				}
			}
			for i := first; i < peers[k+1]; i++ {
				out[i] = x
			}
		}
	})
	return kernels.NewFixed(arrow.PrimitiveTypes.Float64, out, nil)
}

// ntile deals a partition's rows into as many buckets as its argument says; the first of them take one more where they do not go even.
func (r *overRows) ntile(it *overItem, p *inPartitions) (arrow.Array, error) {
	a := r.cols[it.args[0]]
	v, valid := kernels.Values[int64](a), kernels.Valid(a)
	out := make([]int64, r.rows)
	var err error
	p.each(func(from, to int32, _ []int32) {
		rows := int64(to - from)
		for i := from; i < to; i++ {
			if valid != nil && !kernels.Bit(valid, int(i)) {
				continue
			}
			if v[i] <= 0 {
				err = errs.New(errs.Data, "window", "the argument of ntile must be greater than zero, not %d", v[i])
				return
			}
			n := min(v[i], rows)
			size, larger, row := rows/n, rows%n, int64(i-from)
			if in := larger * (size + 1); row < in {
				out[i] = row/(size+1) + 1
			} else {
				out[i] = larger + (row-in)/size + 1
			}
		}
	})
	return kernels.NewFixed(arrow.PrimitiveTypes.Int64, out, valid), err
}

// neighbour is the value of the row so many rows before or behind, or the default where there is none.
func (r *overRows) neighbour(it *overItem, p *inPartitions) (arrow.Array, error) {
	arg := r.cols[it.args[0]]
	idx := make([]int32, r.rows)
	none := func(int32) int32 { return -1 }
	if len(it.args) > 2 {
		arg = kernels.Concat([]arrow.Array{arg, r.cols[it.args[2]]})
		if int64(2*r.rows) > math.MaxInt32 {
			return nil, errs.New(errs.Unsupported, "window", "%s with a default takes at most %d rows of a partition at once", it.Name, math.MaxInt32/2)
		}
		none = func(i int32) int32 { return int32(r.rows) + i }
	}
	sign := int64(1)
	if it.Name == "lag" {
		sign = -1
	}
	offset := func(int32) (int64, bool) { return sign, true }
	if len(it.args) > 1 {
		a := r.cols[it.args[1]]
		v, valid := kernels.Values[int64](a), kernels.Valid(a)
		offset = func(i int32) (int64, bool) { return sign * v[i], valid == nil || kernels.Bit(valid, int(i)) }
	}
	var places *places
	if valid := kernels.Valid(r.cols[it.args[0]]); it.IgnoreNulls && valid != nil {
		places = newPlaces(valid, r.rows)
	}
	p.each(func(from, to int32, _ []int32) {
		for i := from; i < to; i++ {
			d, ok := offset(i)
			if !ok {
				idx[i] = -1
				continue
			}
			d = min(max(d, -int64(r.rows)), int64(r.rows)) // nothing is farther away
			at := int64(i) + d
			if places != nil && d != 0 {
				at = places.from(i, d)
			}
			if at < int64(from) || at >= int64(to) {
				idx[i] = none(i)
			} else {
				idx[i] = int32(at)
			}
		}
	})
	return kernels.Take(arg, idx), nil
}

// places are the rows that have a value.
type places struct {
	before []int32 // by row: how many before it
	rows   []int32
}

func newPlaces(valid []byte, n int) *places {
	return &places{kernels.PrefixCounts(valid, n), kernels.Select(make([]int32, 0, n), valid, n)}
}

// from is the row of the d-th value behind row i, or before it; beyond the last -1, as there is none.
func (p *places) from(i int32, d int64) int64 {
	at := int64(p.before[i]) + d // of the values before i, the last is at before[i]-1
	if d > 0 {
		at = int64(p.before[i+1]) + d - 1
	}
	if at < 0 || at >= int64(len(p.rows)) {
		return -1
	}
	return int64(p.rows[at])
}

// nth is the n-th row of a run that has a value; -1: there is none.
func (p *places) nth(from, to int32, n int64) (row int32, found int64) {
	found = int64(p.before[to] - p.before[from])
	if n < 0 || n >= found {
		return -1, found
	}
	return p.rows[int64(p.before[from])+n], found
}

// valueOfFrame is first_value, last_value and nth_value.
func (r *overRows) valueOfFrame(it *overItem) (arrow.Array, error) {
	arg, f := r.cols[it.args[0]], r.frames[it.key()]
	idx := make([]int32, r.rows)
	if !it.IgnoreNulls && f.HoleLo == nil && it.Name != "nth_value" {
		for i, lo := range f.Lo {
			switch hi := f.Hi[i]; {
			case lo == hi:
				idx[i] = -1
			case it.Name == "first_value":
				idx[i] = lo
			default:
				idx[i] = hi - 1
			}
		}
		return kernels.Take(arg, idx), nil
	}
	valid := []byte(nil)
	if it.IgnoreNulls {
		valid = kernels.Valid(arg)
	}
	nth := func(from, to int32, n int64) (int32, int64) {
		if rows := int64(to - from); n < 0 || n >= rows {
			return -1, rows
		}
		return from + int32(n), int64(to - from)
	}
	if valid != nil {
		nth = newPlaces(valid, r.rows).nth
	}
	want := func(int) int64 { return 0 }
	if it.Name == "nth_value" {
		a := r.cols[it.args[1]]
		v, known := kernels.Values[int64](a), kernels.Valid(a)
		want = func(i int) int64 {
			if known != nil && !kernels.Bit(known, i) {
				return -1
			}
			return v[i] - 1
		}
	}
	var spans [3][2]int32
	for i := range idx {
		idx[i] = -1
		n, list := want(i), spans[:f.Spans(i, &spans)]
		if it.Name == "last_value" {
			for k := len(list) - 1; k >= 0 && idx[i] < 0; k-- {
				_, found := nth(list[k][0], list[k][1], -1)
				idx[i], _ = nth(list[k][0], list[k][1], found-1)
			}
			continue
		}
		for k := 0; k < len(list) && n >= 0 && idx[i] < 0; k++ {
			var found int64
			idx[i], found = nth(list[k][0], list[k][1], n)
			n -= found
		}
	}
	return kernels.Take(arg, idx), nil
}
