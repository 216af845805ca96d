package incremental

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// distinctArgs lets an aggregate with DISTINCT see each argument of a group once: when its weight rises above
// zero, and as a retraction when it falls back. FILTER is applied before, so it decides what counts as an argument.
//
// The table is durable; the chain of a group's entries is derived from the beginning of their keys. There are chains only where groups
// may go before the end.
//
// Entries leave memory one by one, as a group may have any number of them. Where there are chains, a group that leaves takes its entries along, so that an entry in
// memory has a group there.
type distinctArgs struct {
	table    *state.Table
	weight   *state.Int64s
	prefix   *state.Int64s // length of the group's key within the key
	groups   *state.Table  // of the aggregate
	args     *keyEncoder
	enc      *keyEncoder // of group and arguments, where they are held as words
	nKeys    int
	updating bool
	chained  bool

	seen    []seenArg // of late; nil where rows may be taken back
	head    []uint32  // by group slot: its first entry, where chained
	next    []uint32  // by entry slot
	prev    []uint32
	groupOf []uint32 // NoSlot: it is in no chain
	touched []uint32
	key     state.Keys
	slots   []uint32
}

var distinctDecl = state.Decl{Name: "aggregate_distinct", Version: 1, Key: state.RowKey, Values: []string{"_weight", "_prefix"},
	About: "group key, arguments → weight (over inserts above zero, no more), length of the group key"}

// seenArg is an argument of one word that its group has. Over inserts the same again changes nothing and need not be looked up: how often it came is
// of no use there.
type seenArg struct {
	word  uint64
	group uint32 // its slot + 1
}

const seenArgs = 1 << 12

// unseen lists the rows whose argument is none of those seen of late; ok is false where all are to be looked up.
func (d *distinctArgs) unseen(groups []uint32, args []fn.Arg, w []int64) (rows []int32, ok bool) {
	if d.seen == nil || w != nil || len(args) != 1 || args[0].Const || args[0].Array.NullN() > 0 || !oneWord(args[0].Array) {
		return nil, false
	}
	words := kernels.Values[uint64](args[0].Array)
	for i, g := range groups {
		at := &d.seen[(words[i]^uint64(g)<<32)*hashMix>>52]
		if now := (seenArg{words[i], g + 1}); *at != now {
			*at = now
			rows = append(rows, int32(i))
		}
	}
	return rows, true
}

// oneWord reports whether equal values have equal bits, 64 of them.
func oneWord(a arrow.Array) bool {
	switch a.DataType().ID() {
	case arrow.INT64, arrow.UINT64, arrow.TIMESTAMP:
		return true
	}
	return false
}

// newDistinctArgs makes the table of the i-th aggregate of its node.
func newDistinctArgs(i string, keyTypes, argTypes []types.Type, ends []rowkey.Follows, updating, closes bool) *distinctArgs {
	d := &distinctArgs{weight: &state.Int64s{}, prefix: &state.Int64s{}, args: newKeyEncoder(argTypes), nKeys: len(keyTypes), updating: updating, chained: updating || closes}
	if !updating {
		d.seen = make([]seenArg, seenArgs)
	}
	decl := distinctDecl
	decl.Name += i
	d.table = state.NewTable(decl, d.weight, d.prefix)
	d.table.CopyLate()
	d.enc = newKeyEncoder(slices.Concat(keyTypes, argTypes)).into(d.table, ends...)
	return d
}

// changes narrows rows to those by which an argument appears in its group or leaves it. sel are the rows' positions in
// the batch, nil for all; groups, args and w are theirs already.
func (d *distinctArgs) changes(in *Batch, sel []int32, groups []uint32, args []fn.Arg, w []int64) ([]uint32, []fn.Arg, []int64, error) {
	if rows, ok := d.unseen(groups, args, w); ok && len(rows) < len(groups) {
		if len(rows) == 0 {
			return nil, nil, nil, nil
		}
		groups, args = pickRows(groups, rows), []fn.Arg{{Array: kernels.Take(args[0].Array, rows)}}
		if sel != nil {
			rows = pickRows(sel, rows)
		}
		sel = rows
	}
	n := len(groups)
	d.slots = kernels.Sized(d.slots, n)
	k := d.encode(in, sel, groups, args)
	back, of, err := d.table.Bring(k)
	if err != nil {
		return nil, nil, nil, err
	}
	if d.chained {
		for i, s := range back {
			d.link(s, groups[of[i]])
		}
	}
	fresh := d.table.Upsert(k, d.slots)
	d.table.Before(d.slots)
	last, prefix := state.NoSlot, int64(0)
	for _, i := range fresh {
		if g := groups[i]; g != last {
			last, prefix = g, int64(len(d.groups.Key(g)))
		}
		d.prefix.V[d.slots[i]] = prefix
	}
	if d.chained {
		for _, i := range fresh {
			d.link(d.slots[i], groups[i])
		}
	}
	var rows []int32
	var by []int64
	if w == nil && !d.updating { // what is new appears
		for _, s := range d.slots {
			d.weight.V[s]++
		}
		rows = slices.Clone(fresh)
	} else {
		for i, s := range d.slots {
			before, add := d.weight.V[s], int64(1)
			if w != nil {
				add = w[i]
			}
			after := before + add
			d.weight.V[s] = after
			switch {
			case before <= 0 && after > 0:
				rows, by = append(rows, int32(i)), append(by, 1)
			case before > 0 && after <= 0:
				rows, by = append(rows, int32(i)), append(by, -1)
			}
		}
	}
	d.touched = append(d.touched, d.slots...)
	out := make([]fn.Arg, len(args))
	for i, a := range args {
		out[i] = fn.Arg{Array: kernels.Take(a.Array, rows)}
	}
	if w == nil {
		by = nil
	}
	return pickRows(groups, rows), out, by, nil
}

// encode makes (group key, arguments) of the rows that count.
func (d *distinctArgs) encode(in *Batch, sel []int32, groups []uint32, args []fn.Arg) state.Keys {
	n, hash := len(groups), in.Hash
	if sel != nil {
		hash = pickRows(hash, sel)
	}
	cols := make([]arrow.Array, len(args))
	for i, a := range args {
		cols[i] = a.Array
	}
	k := &d.key
	k.Hash, k.Group = kernels.Sized(k.Hash, n), groupsOf(hash, k.Group)
	kernels.HashColumns(cols, n, k.Hash)
	for i, h := range hash {
		k.Hash[i] ^= kernels.HashWord(h)
	}
	if d.table.Packed() {
		keys := in.Cols[:d.nKeys]
		if sel != nil {
			keys = kernels.TakeBatch(keys, sel)
		}
		k.Words = d.enc.encode(slices.Concat(keys, cols), n, k.Hash).Words
		return *k
	}
	// The groups have their keys already.
	x := d.args.encode(cols, n, k.Hash)
	k.Data, k.Offsets = k.Data[:0], append(k.Offsets[:0], 0)
	for i := range n {
		k.Data = append(append(k.Data, d.groups.Key(groups[i])...), x.At(i)...)
		k.Offsets = append(k.Offsets, uint32(len(k.Data)))
	}
	return *k
}

func (d *distinctArgs) link(s, group uint32) {
	for len(d.next) < d.table.Slots() {
		d.next, d.prev, d.groupOf = append(d.next, 0), append(d.prev, 0), append(d.groupOf, state.NoSlot)
	}
	for int(group) >= len(d.head) {
		d.head = append(d.head, state.NoSlot)
	}
	first := d.head[group]
	d.next[s], d.prev[s], d.groupOf[s], d.head[group] = first, state.NoSlot, group, s
	if first != state.NoSlot {
		d.prev[first] = s
	}
}

// unlink takes entries out of their chains, if they are in one.
func (d *distinctArgs) unlink(slots []uint32) {
	for _, s := range slots {
		if int(s) >= len(d.groupOf) || d.groupOf[s] == state.NoSlot {
			continue
		}
		if p := d.prev[s]; p != state.NoSlot {
			d.next[p] = d.next[s]
		} else {
			d.head[d.groupOf[s]] = d.next[s]
		}
		if n := d.next[s]; n != state.NoSlot {
			d.prev[n] = d.prev[s]
		}
		d.groupOf[s] = state.NoSlot
	}
}

// drop forgets the entries of groups.
func (d *distinctArgs) drop(groups []uint32) error {
	if len(groups) == 0 {
		return nil
	}
	clear(d.seen) // another group may get the slot
	if !d.chained {
		d.table.Clear() // all groups go, at the end
		return d.table.DropOut()
	}
	d.table.Delete(d.unchain(groups))
	if d.table.Out() == 0 {
		return nil
	}
	at, begins := make([]uint8, len(groups)), make([][]byte, len(groups))
	for i, g := range groups {
		at[i], begins[i] = d.groups.Group(g), slices.Clone(d.groups.Key(g))
	}
	return d.table.DropBegins(at, begins)
}

// unchain lists the entries of groups that are in memory. They are in no chain any more.
func (d *distinctArgs) unchain(groups []uint32) (entries []uint32) {
	for _, g := range groups {
		if int(g) >= len(d.head) {
			continue
		}
		for s := d.head[g]; s != state.NoSlot; s = d.next[s] {
			entries = append(entries, s)
			d.groupOf[s] = state.NoSlot
		}
		d.head[g] = state.NoSlot
	}
	return entries
}

// leave lets groups leave memory, and with them their entries, of which a checkpoint has what it has of their groups.
func (d *distinctArgs) leave(groups []uint32) error {
	clear(d.seen)
	if !d.chained {
		return nil
	}
	return d.table.Leave(d.unchain(groups))
}

// endStep drops arguments of weight zero and counts negative ones.
func (d *distinctArgs) endStep() (negative int64) {
	d.table.Touch(d.touched)
	for _, s := range d.touched {
		if !d.updating {
			break // none is less than one
		}
		if !d.table.Live(s) {
			continue
		}
		switch w := d.weight.V[s]; {
		case w < 0:
			negative++
		case w == 0:
			gone := []uint32{s}
			d.unlink(gone)
			d.table.Delete(gone) // dead from here on, so a second mention is skipped
		}
	}
	d.touched = d.touched[:0]
	return negative
}

// restored finds the group of each entry again. Entries whose group has left memory again leave too.
func (d *distinctArgs) restored(groups *state.Table) error {
	if !d.chained {
		return nil
	}
	at := make(map[string]uint32, groups.Len())
	for _, s := range groups.All() {
		at[string(groups.Key(s))] = s
	}
	var alone []uint32
	for _, s := range d.table.All() {
		if g, ok := at[string(d.table.Key(s)[:d.prefix.V[s]])]; ok {
			d.link(s, g)
		} else {
			alone = append(alone, s)
		}
	}
	if len(alone) > 0 && groups.Out() == 0 {
		return errs.New(errs.State, "restore", "the snapshot has %d rows of state table %s without a group", len(alone), d.table.Name())
	}
	return d.table.Leave(alone)
}
