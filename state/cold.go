package state

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Cold is where the tables of a graph put rows that memory has no room for. No store is opened before the first row leaves.
type Cold struct {
	mu    sync.Mutex // tables of several instances come at once
	open  func() (Store, error)
	store Store
	given uint32
}

// NewCold is a place whose store open makes.
func NewCold(open func() (Store, error)) *Cold { return &Cold{open: open} }

func (c *Cold) get() (Store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store == nil {
		s, err := c.open()
		if err != nil {
			return nil, err
		}
		c.store = s
	}
	return c.store, nil
}

// number is another one each time.
func (c *Cold) number() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given++
	return c.given
}

// Close closes the store, if there is one.
func (c *Cold) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store == nil {
		return nil
	}
	return c.store.Close()
}

// coldRows are the rows of a table that are in a store and not in memory. A row in memory counts, whatever the store has of its key.
//
// AIDEV-NOTE: that holds because a key that memory drops is either written (evict) or deleted in the store before the store is asked again
// (gone), and because nobody makes a row before Fetch has looked for it.
type coldRows struct {
	in     *Cold
	store  Store        // nil: no row has left yet
	prefix []byte       // of the table's keys there
	has    [Groups]bool // of which this table has put rows there
	n      int          // rows
	limit  int64        // bytes in memory, for Restore
	codec  *rowCodec
	seen   seen                       // hashes of keys that the store may have: a new key is not asked for
	marks  Chunked[coldMark]          // by slot
	hand   uint32                     // the slot that is looked at next
	stuck  bool                       // rows that had to leave stayed: no checkpoint has their changes
	at     []byte                     // behind the last key that More has given
	gone   [][]byte                   // keys of dropped rows that the store may have
	slots  []uint32                   // of the keys that were fetched last, with these hashes,
	of     []uint64                   // as long as none of them can have another row
	leave  func(slots []uint32) error // is told of rows that are about to leave; nil: nobody is

	admission
}

// coldMark is what is known of a row in memory.
type coldMark = uint8

const (
	recent coldMark = 1 << iota // asked for since the hand came by
	there                       // the store has a version
	same                        // and it is this one
	guest                       // came back and was not asked for again (admission)
)

// fetchRows is how many rows are brought back, or put away, at a time where many are.
const fetchRows = 1 << 14

// Limit lets rows of an empty table leave memory, to a store under a path that no other table has but those with other key groups. From then on Fetch comes before Find and Upsert,
// and nobody holds a slot over Evict.
func (t *Table) Limit(in *Cold, path string, bytes int64) {
	if t.Decl.Key != RowKey || t.Len() > 0 {
		panic(errs.Bug("state", "rows of table %s cannot leave memory", t.Decl.Name))
	}
	c := &coldRows{in: in, limit: bytes}
	c.prefix = storePrefix(path, t.Decl.Name)
	ts := make([]types.Type, len(t.cols))
	for i, col := range t.cols {
		ts[i] = col.State()
	}
	c.codec = newRowCodec(ts)
	t.cold = c
}

// Out is how many rows are in the store alone.
func (t *Table) Out() int {
	switch {
	case t.units != nil:
		return t.units.out
	case t.cold != nil:
		return t.cold.n
	}
	return 0
}

// Fetch brings rows of these keys into memory, those that have left it.
func (t *Table) Fetch(k Keys) error {
	_, _, err := t.Bring(k)
	return err
}

// Bring does what Fetch does, and says which rows came and the position of a key that each has.
func (t *Table) Bring(k Keys) (slots []uint32, asked []int32, err error) {
	if t.cold == nil || t.cold.store == nil {
		return nil, nil, nil
	}
	c := t.cold
	c.of = nil
	if err := c.drop(); err != nil {
		return nil, nil, err
	}
	c.marks.Resize(t.room)
	c.slots = kernels.Sized(c.slots, k.Len())
	t.Find(k, c.slots)
	t.looks -= int64(k.Len()) // the caller looks again
	c.of = k.Hash
	var missing []int32
	for i, s := range c.slots {
		if s != NoSlot {
			c.askedFor(s)
		} else if c.seen.has(k.Hash[i]) {
			missing = append(missing, int32(i))
		}
	}
	if len(missing) == 0 || c.n == 0 {
		return nil, nil, nil
	}
	keys, rows := storeKeys(c.prefix, t, &k, missing)
	found, err := c.store.Get(keys)
	if err != nil {
		return nil, nil, err
	}
	var cold []coldRow
	for i, v := range found {
		if v != nil {
			cold, asked = append(cold, coldRow{keys[i], v, k.Hash[rows[i]], k.Group[rows[i]]}), append(asked, rows[i])
		}
	}
	slots, err = t.bring(cold)
	for i, s := range slots {
		if !c.comes(cold[i].hash) {
			*c.marks.At(s) |= guest
			c.guests++
		}
	}
	return slots, asked, err
}

// found writes the slots of keys that were just fetched, as far as they are known: rows that came since have NoSlot. It reports whether the keys are those.
func (c *coldRows) found(k *Keys, slots []uint32) bool {
	n := len(k.Hash)
	if n == 0 || len(c.of) != n || &c.of[0] != &k.Hash[0] {
		return false
	}
	copy(slots, c.slots)
	c.of = nil // the memory of the hashes may have others next
	return true
}

// within is for how many slots the columns get room, instead of n: for fewer when the table would then hold more than its limit, or rows would leave for the sake of
// slots that nobody has used.
func (t *Table) within(n int) int {
	if t.cold == nil || t.ahead == 0 {
		return n
	}
	held := t.Bytes()
	if 2*held <= t.cold.limit {
		return n
	}
	fit := int(t.cold.limit / (held/int64(t.ahead) + 1))
	return max(min(fit, n), t.used+t.used/8+1)
}

// coldRow is a row as the store has it.
type coldRow struct {
	key, value []byte
	hash       uint64
	group      uint8
}

// storeKeys are the keys in the store of some rows, sorted and each once, with the row that each is of.
func storeKeys(prefix []byte, t *Table, k *Keys, rows []int32) ([][]byte, []int32) {
	size := len(prefix) + 24
	mem := make([]byte, 0, size*len(rows))
	all := make([][]byte, len(rows))
	w := &k.Words
	if t.Packed() {
		w = t.asked(k)
	}
	for i, r := range rows {
		if cap(mem)-len(mem) < size {
			mem = make([]byte, 0, size*(len(rows)-i))
		}
		from := len(mem)
		mem = append(append(mem, prefix...), k.Group[r])
		if t.Packed() {
			key := keyOf(w, int(r))
			mem = t.words.pack.AppendKey(mem, key.high, key.low, key.nulls, key.text)
		} else {
			mem = append(mem, k.At(int(r))...)
		}
		all[i] = mem[from:len(mem):len(mem)]
	}
	keys, of := make([][]byte, 0, len(rows)), make([]int32, 0, len(rows))
	for _, i := range storeOrder(len(prefix), all) {
		if n := len(keys); n == 0 || !bytes.Equal(keys[n-1], all[i]) {
			keys, of = append(keys, all[i]), append(of, rows[i])
		}
	}
	return keys, of
}

// bring makes rows of the store rows in memory, which has none of their keys.
func (t *Table) bring(rows []coldRow) ([]uint32, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	c := t.cold
	slots := make([]uint32, len(rows))
	t.idx.reserve(len(rows))
	for i, r := range rows {
		s := t.take(r.hash, r.group)
		t.setKey(s, r.key[len(c.prefix)+1:])
		t.idx.insert(r.hash, s)
		slots[i] = s
	}
	t.grow()
	c.marks.Resize(t.room)
	for i, a := range c.columns(rows) {
		if err := t.cols[i].Load(slots, a); err != nil {
			return nil, errs.New(errs.State, "state store", "column %q of state table %s: %w", t.Decl.Values[i], t.Decl.Name, err)
		}
	}
	for _, s := range slots {
		*c.marks.At(s) = there | same // a row that is asked for once leaves before those that are asked for again
	}
	c.n -= len(rows)
	return slots, nil
}

// columns are the value columns of rows. A value begins with the hash of its key.
func (c *coldRows) columns(rows []coldRow) []arrow.Array {
	return c.codec.decode(len(rows), func(i int) []byte { return rows[i].value[8:] })
}

// Evict lets rows leave memory until the table holds about so many bytes. Nobody may hold a slot.
func (t *Table) Evict(limit int64) error {
	c := t.cold
	if c == nil {
		return nil
	}
	c.stuck = false
	if t.n == 0 {
		return nil
	}
	held := t.Bytes() - c.seen.bytes() // which grows with what is out, as the store's own memory does
	if held <= limit {
		return nil
	}
	keep := int(limit / max(1, held/int64(t.used)))
	if t.n <= keep {
		return nil // the memory is that of slots which are free
	}
	if c.store == nil {
		var err error
		if c.store, err = c.in.get(); err != nil {
			return err
		}
	}
	c.marks.Resize(t.room)
	c.rows = keep
	out := c.choose(t, t.n-keep+keep/64)
	c.stuck = t.tracking && len(out) < t.n-keep
	for len(out) > 0 {
		n := min(fetchRows, len(out))
		if err := t.evict(out[:n]); err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
}

// Stuck reports whether rows stayed, when the table was told to hold less, because no checkpoint has their changes.
func (t *Table) Stuck() bool { return t.cold != nil && t.cold.stuck }

// choose gives up to n rows that may leave: guests first, and then in the order in which the hand comes to them, in two rounds at most.
func (c *coldRows) choose(t *Table, n int) (out []uint32) {
	if c.guestsFirst() {
		out = c.guestsOut(t, n, nil)
	}
	looks, guests := 0, len(out)
	for range 2 * t.used {
		if len(out) == n {
			break
		}
		if c.hand++; int(c.hand) >= t.used {
			c.hand = 0
		}
		s := c.hand
		if !c.mayLeave(t, s) {
			continue
		}
		looks++
		switch m := c.marks.At(s); {
		case *m&chosen != 0: // in the first round, or as a guest
		case *m&recent != 0:
			*m &^= recent
		default:
			*m |= chosen
			out = append(out, s)
		}
	}
	c.looked(looks, len(out)-guests)
	return out
}

// mayLeave reports whether a slot has a row whose changes are all in a checkpoint.
func (c *coldRows) mayLeave(t *Table, s uint32) bool {
	return t.Live(s) && (!t.tracking || *t.touched.At(s) <= t.forgotten)
}

// chosen marks a row that is about to leave.
const chosen coldMark = 1 << 7

// evict writes rows, those that the store has not as they are, and forgets them.
func (t *Table) evict(slots []uint32) error {
	t.Before(slots)
	c := t.cold
	var write []uint32
	for _, s := range slots {
		if *c.marks.At(s)&same == 0 {
			write = append(write, s)
		}
	}
	if err := c.drop(); err != nil {
		return err
	}
	if c.seen.n+len(write) > c.seen.room && c.seen.all > 2*(c.n+len(slots)) {
		if err := c.lookAgain(); err != nil {
			return err
		}
	}
	pairs, err := c.pairs(t, write)
	if err == nil && len(pairs) > 0 {
		err = c.store.Apply(pairs)
	}
	if err != nil {
		return err
	}
	if c.leave != nil {
		if err := c.leave(slots); err != nil {
			return err
		}
	}
	for _, s := range slots {
		c.clear(s)
		if t.tracking {
			*t.touched.At(s) = 0
		}
	}
	c.n += len(slots)
	t.release(slots)
	return nil
}

// lookAgain forgets hashes of rows that are in the store no more.
func (c *coldRows) lookAgain() error {
	c.seen = seen{}
	for g, has := range c.has {
		if !has {
			continue
		}
		from, to := groupRange(c.prefix, uint8(g))
		if err := c.store.Range(from, to, func(p Pair) bool {
			c.seen.add(binary.BigEndian.Uint64(p.Value))
			return true
		}); err != nil {
			return err
		}
	}
	return nil
}

// pairs are rows as the store takes them, sorted.
func (c *coldRows) pairs(t *Table, slots []uint32) ([]Pair, error) {
	cols := make([]arrow.Array, len(t.cols))
	for i, col := range t.cols {
		var err error
		if cols[i], err = col.Save(slots); err != nil {
			return nil, errs.New(errs.State, "state store", "column %q of state table %s: %w", t.Decl.Values[i], t.Decl.Name, err)
		}
	}
	c.codec.from(cols, len(slots))
	mem := make([]byte, 0, len(slots)*(len(c.prefix)+80))
	keys, values := make([][]byte, len(slots)), make([][]byte, len(slots))
	for i, s := range slots {
		from := len(mem)
		g := t.Group(s)
		c.has[g] = true
		if *c.marks.At(s)&there == 0 {
			c.seen.add(t.Hash(s))
		}
		mem = append(append(append(mem, c.prefix...), g), t.Key(s)...)
		to := len(mem)
		mem = c.codec.append(binary.BigEndian.AppendUint64(mem, t.Hash(s)), i)
		keys[i], values[i] = mem[from:to:to], mem[to:len(mem):len(mem)]
	}
	out := make([]Pair, len(slots))
	for i, at := range storeOrder(len(c.prefix), keys) {
		out[i] = Pair{keys[at], values[at]}
	}
	return out, nil
}

// forget notes that rows go for good: what the store has of them does not count.
func (c *coldRows) forget(t *Table, slots []uint32) {
	for _, s := range slots {
		if m := c.mark(s); m&there != 0 {
			c.gone = append(c.gone, slices.Concat(c.prefix, []byte{t.Group(s)}, t.Key(s)))
		}
		c.clear(s)
	}
}

func (c *coldRows) mark(s uint32) coldMark {
	if int(s) >= c.marks.Len() {
		return 0
	}
	return *c.marks.At(s)
}

func (c *coldRows) clear(s uint32) {
	if int(s) < c.marks.Len() {
		c.noGuest(s)
		*c.marks.At(s) = 0
	}
}

// askedFor notes that somebody asks for a row in memory.
func (c *coldRows) askedFor(s uint32) {
	c.noGuest(s)
	*c.marks.At(s) |= recent
}

func (c *coldRows) noGuest(s uint32) {
	if m := c.marks.At(s); *m&guest != 0 {
		*m &^= guest
		c.guests--
	}
}

// changed notes that the store has rows no longer as they are.
func (c *coldRows) changed(slots []uint32) {
	for _, s := range slots {
		if int(s) < c.marks.Len() {
			*c.marks.At(s) &^= same
		}
	}
}

// drop deletes in the store what has gone.
func (c *coldRows) drop() error {
	if len(c.gone) == 0 {
		return nil
	}
	slices.SortFunc(c.gone, bytes.Compare)
	pairs := make([]Pair, 0, len(c.gone))
	for i, k := range c.gone {
		if i == 0 || !bytes.Equal(c.gone[i-1], k) {
			pairs = append(pairs, Pair{Key: k})
		}
	}
	c.gone = c.gone[:0]
	return c.store.Apply(pairs)
}

// More brings back rows that have left, other ones each time, and reports whether there are more. Between the calls rows may be dropped;
// none may be evicted.
func (t *Table) More() (more bool, err error) {
	c := t.cold
	if c == nil || c.n == 0 {
		return false, nil
	}
	if err := c.drop(); err != nil {
		return false, err
	}
	var rows []coldRow
	err = c.visit(t, c.at, func(r coldRow) bool {
		rows = append(rows, r)
		return len(rows) < fetchRows
	})
	if err != nil {
		return false, err
	}
	if len(rows) == 0 {
		return false, errs.Bug("state store", "%d rows of state table %s are not in the store", c.n, t.Decl.Name)
	}
	c.at = append(rows[len(rows)-1].key, 0)
	if _, err = t.bring(rows); c.n == 0 {
		c.at = nil
	}
	return err == nil, err
}

// visit goes over the rows that memory has not, in the order of their keys, behind some key or from the beginning. It keeps to the key groups that
// this table has put there: those of other instances lie between them.
func (c *coldRows) visit(t *Table, from []byte, row func(coldRow) bool) error {
	for g, has := range c.has {
		at, to := groupRange(c.prefix, uint8(g))
		if !has || bytes.Compare(from, to) >= 0 {
			continue
		}
		if bytes.Compare(from, at) > 0 {
			at = from
		}
		going := true
		err := c.store.Range(at, to, func(p Pair) bool {
			r := coldRow{p.Key, p.Value, binary.BigEndian.Uint64(p.Value), p.Key[len(c.prefix)]}
			if t.find(r.hash, p.Key[len(c.prefix)+1:]) == NoSlot {
				going = row(r)
			}
			return going
		})
		if err != nil || !going {
			return err
		}
	}
	return nil
}

// storePrefix is what the keys of a table begin with in a store.
func storePrefix(path, table string) []byte {
	p := StoreKey(path, table, 0, nil)
	return p[:len(p)-1]
}

// groupRange is where the keys of a key group begin, and where they have ended.
func groupRange(prefix []byte, g uint8) (from, to []byte) {
	from, to = append(slices.Clone(prefix), g), slices.Clone(prefix)
	if g == Groups-1 {
		to[len(to)-1]++ // of the table's name, which no 0xff ends
		return from, to
	}
	return from, append(to, g+1)
}

// withCold adds to a part of what is in memory the rows that are not.
func (t *Table) withCold(p Part) (Part, error) {
	c := t.cold
	if c == nil || c.n == 0 {
		return p, nil
	}
	if err := c.drop(); err != nil {
		return Part{}, err
	}
	var rows []coldRow
	if err := c.visit(t, nil, func(r coldRow) bool {
		rows = append(rows, r)
		return true
	}); err != nil {
		return Part{}, err
	}
	group := array.NewUint8Builder(memory.DefaultAllocator)
	hash := array.NewUint64Builder(memory.DefaultAllocator)
	key := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	deleted := array.NewBooleanBuilder(memory.DefaultAllocator)
	for _, r := range rows {
		group.Append(r.group)
		hash.Append(r.hash)
		key.Append(r.key[len(c.prefix)+1:])
		deleted.Append(false)
	}
	more := append([]arrow.Array{group.NewArray(), hash.NewArray(), key.NewArray(), deleted.NewArray()}, c.columns(rows)...)
	return p.with(more)
}

// restoreCold takes a part in pieces, each of which leaves memory when there is no room.
func (t *Table) restoreCold(p Part, mine func(group uint8) bool) error {
	n := p.Rows.NumRows()
	for from := int64(0); from < n; from += fetchRows {
		piece := p
		piece.Rows = p.Rows.NewSlice(from, min(n, from+fetchRows))
		if t.cold.store != nil && !p.Fresh { // otherwise nobody has the keys
			if err := t.Fetch(partKeys(piece, t, mine)); err != nil {
				return err
			}
		}
		if err := t.restore(piece, mine); err != nil {
			return err
		}
		if ahead := int64(p.ahead(mine)); from == 0 && t.n > 0 && ahead > int64(t.used) && ahead*(t.Bytes()/int64(t.used)) <= t.cold.limit {
			t.expect(int(ahead)) // by what the first rows take, all of them stay in memory
		}
		if err := t.Evict(t.cold.limit); err != nil {
			return err
		}
	}
	return nil
}

// partKeys are the keys of a part, of the groups that are mine.
func partKeys(p Part, t *Table, mine func(group uint8) bool) (k Keys) {
	groups, hashes, keys := p.Rows.Column(0).(*array.Uint8), p.Rows.Column(1).(*array.Uint64), p.Rows.Column(2).(*array.Binary)
	k.Offsets = append(k.Offsets, 0)
	for i := range groups.Len() {
		if mine(groups.Value(i)) {
			k.Data = append(k.Data, keys.Value(i)...)
			k.Offsets = append(k.Offsets, uint32(len(k.Data)))
			k.Hash, k.Group = append(k.Hash, hashes.Value(i)), append(k.Group, groups.Value(i))
		}
	}
	return k
}
