package state

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
)

// Due finds rows again that have left memory, once their time is up: their keys in the order of these times, in the store. It is derived from the rows. A key
// may stand here although its row has gone, or is in memory: who takes it looks.
type Due struct {
	in    *Cold
	store Store // nil: nothing has left yet
	pre   []byte
	least int64 // no key has an earlier time
	any   bool
}

// NewDue is empty.
func NewDue(in *Cold) *Due {
	return &Due{in: in, pre: StoreKey("", "due", 0, binary.BigEndian.AppendUint32(nil, in.number()))}
}

// Add notes rows of a table, and when their time is up.
func (d *Due) Add(t *Table, slots []uint32, times []int64) error {
	pairs := make([]Pair, len(slots))
	for i, s := range slots {
		key := append(append(d.at(times[i]), t.Group(s)), t.Key(s)...)
		pairs[i] = Pair{key, binary.BigEndian.AppendUint64(nil, t.Hash(s))}
	}
	return d.put(pairs, times)
}

// put writes entries of these times.
func (d *Due) put(pairs []Pair, times []int64) error {
	if len(pairs) == 0 {
		return nil
	}
	if d.store == nil {
		var err error
		if d.store, err = d.in.get(); err != nil {
			return err
		}
	}
	if least := slices.Min(times); !d.any || least < d.least {
		d.any, d.least = true, least
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return bytes.Compare(a.Key, b.Key) })
	pairs = slices.CompactFunc(pairs, func(a, b Pair) bool { return bytes.Equal(a.Key, b.Key) })
	return d.store.Apply(pairs)
}

// clear forgets all keys.
func (d *Due) clear() error {
	if d == nil || !d.any {
		return nil
	}
	d.any = false
	return d.store.DeleteRange(d.pre, behind(d.pre))
}

// at is where the keys of a time begin.
func (d *Due) at(time int64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, len(d.pre)+40), d.pre...), uint64(time)^1<<63)
}

// dueRows is how many keys are taken at a time.
const dueRows = 1 << 11

// Take gives some of the keys whose time is up, the earliest first, and none when there are no more. It does not give them again.
func (d *Due) Take(now int64) (k Keys, err error) {
	if d == nil || !d.any || d.least > now {
		return k, nil
	}
	from := d.at(math.MinInt64)
	to := behind(d.pre)
	k.Offsets = []uint32{0}
	d.any = false
	if err := d.store.Range(from, to, func(p Pair) bool {
		time := int64(binary.BigEndian.Uint64(p.Key[len(d.pre):]) ^ 1<<63)
		if time > now || k.Len() == dueRows {
			d.any, d.least, to = true, time, p.Key
			return false
		}
		key := p.Key[len(d.pre)+8:]
		k.Group, k.Data = append(k.Group, key[0]), append(k.Data, key[1:]...)
		k.Offsets = append(k.Offsets, uint32(len(k.Data)))
		k.Hash = append(k.Hash, binary.BigEndian.Uint64(p.Value))
		return true
	}); err != nil {
		return k, err
	}
	return k, d.store.DeleteRange(from, to)
}
