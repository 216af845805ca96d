package incremental

import (
	"sync"
	"sync/atomic"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
)

// owner is the instance that holds a key group: each has a range of them, so another parallelism only moves ranges.
func owner(group, instances int) int { return group * instances / kernels.KeyGroups }

// exchange splits a batch by the owners of its rows' key groups. Rows keep their order within an owner.
func exchange(in Batch, instances int) []Batch {
	var of [kernels.KeyGroups]uint8 // the owner; as many key groups as instances at most
	for g := range of {
		of[g] = uint8(owner(g, instances))
	}
	counts := make([]int, instances)
	for _, h := range in.Hash {
		counts[of[kernels.KeyGroup(h)]]++
	}
	rows, all := make([][]int32, instances), kernels.Room[int32](in.N)
	for w, n := range counts {
		rows[w], all = all[:0:n], all[n:]
	}
	for i, h := range in.Hash {
		w := of[kernels.KeyGroup(h)]
		rows[w] = append(rows[w], int32(i))
	}
	out := make([]Batch, instances)
	for w, r := range rows {
		switch len(r) {
		case 0:
		case in.N:
			out[w] = in
		default:
			out[w] = in.take(r)
		}
	}
	return out
}

// parallel runs tasks 0 … n-1 on at most `workers` goroutines.
func parallel(workers, n int, task func(i int) error) error {
	return parallelBy(workers, n, func(_, i int) error { return task(i) })
}

// parallelBy also tells the task its worker. The first error in the order of tasks wins, so that a failure is the same in each run.
//
// AIDEV-NOTE: a panic in a goroutine would end the user's process; it becomes an error here.
func parallelBy(workers, n int, task func(worker, i int) error) error {
	fails := make([]error, n)
	run := func(worker, i int) {
		defer func() {
			if r := recover(); r != nil {
				fails[i] = errs.Recovered("step", r)
			}
		}()
		fails[i] = task(worker, i)
	}
	if workers = min(workers, n); workers <= 1 {
		for i := range n {
			if run(0, i); fails[i] != nil {
				return fails[i]
			}
		}
		return nil
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				run(w, i)
			}
		}()
	}
	wg.Wait()
	for _, err := range fails {
		if err != nil {
			return err
		}
	}
	return nil
}
