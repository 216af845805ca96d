// Package statetest is what every state.Store must pass.
//
// Invariant: no case knows which store it runs on; the model is state.Memory, whose answers are the right ones.
package statetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/state"
)

// Run tests a store; open makes an empty one.
func Run(t *testing.T, open func(t *testing.T) state.Store) {
	cases := []struct {
		name string
		run  func(t *testing.T, s state.Store)
	}{
		{"get tells absent from empty", absentAndEmpty},
		{"a change of a batch wins over the old value", overwrite},
		{"range is ordered by unsigned bytes and half open", ranges},
		{"delete range", deleteRange},
		{"a snapshot does not see later changes", snapshot},
		{"a range does not see changes made while it runs", rangeWhileChanging},
		{"restore replaces, ingest adds", restoreAndIngest},
		{"slices handed in may be reused", ownership},
		{"groups of a table are ranges", groups},
		{"unsorted changes are refused", unsorted},
		{"closed is closed", closed},
		{"keys and values of any size", sizes},
		{"many batches, read in batches", many},
		{"a feed that is not sorted changes nothing", unsortedFeed},
		{"equals the model on random work", random},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			c.run(t, s)
			if err := s.Close(); err != nil {
				t.Fatalf("close: %v", err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kv(k, v string) state.Pair { return state.Pair{Key: []byte(k), Value: []byte(v)} }
func del(k string) state.Pair   { return state.Pair{Key: []byte(k)} }

type reader interface {
	Get(keys [][]byte) ([][]byte, error)
	Range(from, to []byte, visit func(state.Pair) bool) error
}

func dump(t *testing.T, s reader, from, to []byte) string {
	t.Helper()
	var b bytes.Buffer
	must(t, s.Range(from, to, func(p state.Pair) bool {
		fmt.Fprintf(&b, "%s=%s ", p.Key, p.Value)
		return true
	}))
	return b.String()
}

func wants(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
}

func absentAndEmpty(t *testing.T, s state.Store) {
	must(t, s.Apply([]state.Pair{kv("", "root"), kv("a", ""), kv("b", "2")}))
	got, err := s.Get([][]byte{{}, []byte("a"), []byte("aa"), []byte("b")})
	must(t, err)
	if string(got[0]) != "root" || got[1] == nil || len(got[1]) != 0 || got[2] != nil || string(got[3]) != "2" {
		t.Fatalf("got %q", got)
	}
}

func overwrite(t *testing.T, s state.Store) {
	must(t, s.Apply([]state.Pair{kv("a", "1"), kv("b", "1"), kv("c", "1")}))
	must(t, s.Apply([]state.Pair{kv("a", "2"), del("b"), del("zz")}))
	wants(t, dump(t, s, nil, nil), "a=2 c=1 ")
}

func ranges(t *testing.T, s state.Store) {
	must(t, s.Apply([]state.Pair{kv("a", "1"), kv("a\x00", "2"), kv("b", "3"), kv("\xff", "4"), kv("\xff\xff", "5")}))
	wants(t, dump(t, s, []byte("a"), []byte("b")), "a=1 a\x00=2 ")
	wants(t, dump(t, s, []byte("b"), nil), "b=3 \xff=4 \xff\xff=5 ")
	wants(t, dump(t, s, []byte("b"), []byte("a")), "")
	n := 0
	must(t, s.Range(nil, nil, func(state.Pair) bool { n++; return n < 2 }))
	if n != 2 {
		t.Fatalf("visited %d pairs after asking to stop at 2", n)
	}
}

func deleteRange(t *testing.T, s state.Store) {
	must(t, s.Apply([]state.Pair{kv("a", "1"), kv("b", "2"), kv("c", "3"), kv("d", "4")}))
	must(t, s.DeleteRange([]byte("b"), []byte("d")))
	wants(t, dump(t, s, nil, nil), "a=1 d=4 ")
	must(t, s.DeleteRange([]byte("b"), nil))
	wants(t, dump(t, s, nil, nil), "a=1 ")
	must(t, s.DeleteRange(nil, nil))
	wants(t, dump(t, s, nil, nil), "")
}

func snapshot(t *testing.T, s state.Store) {
	must(t, s.Apply([]state.Pair{kv("a", "1"), kv("b", "2")}))
	v, err := s.Snapshot()
	must(t, err)
	must(t, s.Apply([]state.Pair{kv("a", "9"), del("b"), kv("c", "3")}))
	must(t, s.DeleteRange(nil, []byte("b")))
	wants(t, dump(t, v, nil, nil), "a=1 b=2 ")
	got, err := v.Get([][]byte{[]byte("b"), []byte("c")})
	must(t, err)
	if string(got[0]) != "2" || got[1] != nil {
		t.Fatalf("got %q", got)
	}
	must(t, v.Close())
	wants(t, dump(t, s, nil, nil), "c=3 ")
}

func rangeWhileChanging(t *testing.T, s state.Store) {
	must(t, s.Apply([]state.Pair{kv("a", "1"), kv("b", "2"), kv("c", "3")}))
	var seen []string
	must(t, s.Range(nil, nil, func(p state.Pair) bool {
		seen = append(seen, string(p.Key))
		must(t, s.Apply([]state.Pair{del("b"), kv("d", "4")}))
		return true
	}))
	if !slices.Equal(seen, []string{"a", "b", "c"}) {
		t.Fatalf("saw %q", seen)
	}
}

func feed(pairs ...state.Pair) func() (state.Pair, bool) {
	return func() (state.Pair, bool) {
		if len(pairs) == 0 {
			return state.Pair{}, false
		}
		p := pairs[0]
		pairs = pairs[1:]
		return p, true
	}
}

func restoreAndIngest(t *testing.T, s state.Store) {
	must(t, s.Apply([]state.Pair{kv("old", "1")}))
	must(t, s.Restore(feed(kv("a", "1"), kv("c", "3"))))
	wants(t, dump(t, s, nil, nil), "a=1 c=3 ")
	must(t, s.Ingest(feed(kv("b", "2"), kv("c", "9"))))
	wants(t, dump(t, s, nil, nil), "a=1 b=2 c=9 ")
	must(t, s.Restore(feed()))
	wants(t, dump(t, s, nil, nil), "")
}

func ownership(t *testing.T, s state.Store) {
	k, v := []byte("k"), []byte("v")
	must(t, s.Apply([]state.Pair{{Key: k, Value: v}}))
	k[0], v[0] = 'x', 'x'
	got, err := s.Get([][]byte{[]byte("k")})
	must(t, err)
	wants(t, string(got[0]), "v")
	got[0][0] = 'y'
	wants(t, dump(t, s, nil, nil), "k=v ")
}

func groups(t *testing.T, s state.Store) {
	at := func(op, table string, g uint8, k string) state.Pair {
		return state.Pair{Key: state.StoreKey(op, table, g, []byte(k)), Value: []byte(k)}
	}
	all := []state.Pair{at("1", "seen", 7, "\xff\xff"), at("1", "seen", 8, ""), at("1", "seen", 8, "x"), at("1", "seen", 9, ""), at("1", "seen2", 8, "y"), at("10", "seen", 8, "z")}
	slices.SortFunc(all, func(a, b state.Pair) int { return bytes.Compare(a.Key, b.Key) })
	must(t, s.Apply(all))
	n := 0
	must(t, s.Range(state.StoreKey("1", "seen", 8, nil), state.StoreKey("1", "seen", 9, nil), func(p state.Pair) bool {
		if v := string(p.Value); v != "" && v != "x" {
			t.Errorf("a row of another group or table: %q", v)
		}
		n++
		return true
	}))
	if n != 2 {
		t.Fatalf("the group has %d rows, not 2", n)
	}
}

func unsorted(t *testing.T, s state.Store) {
	if err := s.Apply([]state.Pair{kv("b", "1"), kv("a", "1")}); err == nil {
		t.Fatal("took unsorted changes")
	}
	wants(t, dump(t, s, nil, nil), "")
}

func closed(t *testing.T, s state.Store) {
	must(t, s.Close())
	if _, err := s.Get([][]byte{[]byte("a")}); err == nil {
		t.Fatal("a closed store answered")
	}
}

func sizes(t *testing.T, s state.Store) {
	huge := strings.Repeat("v", 40<<20)
	long := strings.Repeat("k", 1<<16)
	pairs := []state.Pair{kv("", ""), kv("\x00", "nul"), kv("h", huge), kv(long, "long"), kv(long+"\x00", huge[:1<<20]), kv("\xff", "last")}
	must(t, s.Apply(pairs))
	equal(t, all(t, s), pairs)
	must(t, s.Restore(feed(pairs...)))
	equal(t, all(t, s), pairs)
	got, err := s.Get([][]byte{{}, []byte("h"), []byte(long), []byte(long + "\x00"), []byte(long + "\x01")})
	must(t, err)
	if got[0] == nil || len(got[0]) != 0 || string(got[1]) != huge || string(got[2]) != "long" || len(got[3]) != 1<<20 || got[4] != nil {
		t.Fatal("the values of large keys differ")
	}
	must(t, s.Apply([]state.Pair{{}, del("h"), del(long)}))
	equal(t, all(t, s), []state.Pair{pairs[1], pairs[4], pairs[5]})
	must(t, s.DeleteRange(nil, nil))
	equal(t, all(t, s), nil)
}

// many writes enough that a store on disk moves what it has from one level to another.
func many(t *testing.T, s state.Store) {
	r, model := clock.NewRand(3), state.NewMemory()
	for round := range 12 {
		changes := batch(r, 4000, 20_000)
		must(t, model.Apply(changes))
		if round%4 == 3 {
			must(t, s.Ingest(feed(changes...)))
		} else {
			must(t, s.Apply(changes))
		}
		var keys [][]byte
		for _, p := range batch(r, 500, 20_000) {
			keys = append(keys, p.Key)
		}
		want, err := model.Get(keys)
		must(t, err)
		got, err := s.Get(keys)
		must(t, err)
		for i := range keys {
			if (got[i] == nil) != (want[i] == nil) || !bytes.Equal(got[i], want[i]) {
				t.Fatalf("round %d: %q has %q, not %q", round, keys[i], got[i], want[i])
			}
		}
	}
	equal(t, all(t, s), all(t, model))
}

// batch makes sorted changes of about n keys out of so many.
func batch(r clock.Rand, n, keys int) []state.Pair {
	changes := map[string]state.Pair{}
	for range n {
		p := state.Pair{Key: []byte(fmt.Sprintf("%c%08d", 'a'+rune(r.IntN(3)), r.IntN(keys))), Value: []byte(strings.Repeat(fmt.Sprint(r.IntN(1000)), r.IntN(30)))}
		if r.IntN(5) == 0 {
			p.Value = nil
		}
		changes[string(p.Key)] = p
	}
	out := make([]state.Pair, 0, len(changes))
	for _, p := range changes {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b state.Pair) int { return bytes.Compare(a.Key, b.Key) })
	return out
}

func all(t *testing.T, s reader) (out []state.Pair) {
	t.Helper()
	must(t, s.Range(nil, nil, func(p state.Pair) bool {
		out = append(out, p)
		return true
	}))
	return out
}

func equal(t *testing.T, got, want []state.Pair) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d pairs, not %d", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i].Key, want[i].Key) || !bytes.Equal(got[i].Value, want[i].Value) {
			t.Fatalf("pair %d differs: keys of %d and %d bytes, values of %d and %d", i, len(got[i].Key), len(want[i].Key), len(got[i].Value), len(want[i].Value))
		}
	}
}

func unsortedFeed(t *testing.T, s state.Store) {
	must(t, s.Apply([]state.Pair{kv("a", "1")}))
	for _, load := range []func(func() (state.Pair, bool)) error{s.Ingest, s.Restore} {
		for _, f := range [][]state.Pair{{kv("c", "1"), kv("b", "1")}, {kv("b", "1"), kv("b", "2")}} {
			if err := load(feed(f...)); err == nil {
				t.Fatal("took an unsorted feed")
			}
			wants(t, dump(t, s, nil, nil), "a=1 ")
		}
	}
}

func random(t *testing.T, s state.Store) {
	const seed = 1
	r := clock.NewRand(seed)
	model := state.NewMemory()
	var viewed state.View
	var shown []state.Pair // when it was made
	key := func() []byte { return []byte(fmt.Sprintf("%c%d", 'a'+rune(r.IntN(3)), r.IntN(40))) }
	for round := range 300 {
		switch r.IntN(16) {
		case 0, 1:
			from, to := key(), key()
			must(t, model.DeleteRange(from, to))
			must(t, s.DeleteRange(from, to))
		case 2:
			load := batch(r, 30, 40)
			must(t, model.Ingest(feed(load...)))
			must(t, s.Ingest(feed(load...)))
		case 3:
			if viewed != nil {
				equal(t, all(t, viewed), shown)
				must(t, viewed.Close())
			}
			v, err := s.Snapshot()
			must(t, err)
			viewed, shown = v, all(t, model)
		case 4:
			if round%50 == 0 {
				load := batch(r, 30, 40)
				must(t, model.Restore(feed(load...)))
				must(t, s.Restore(feed(load...)))
			}
		default:
			changes := map[string]state.Pair{}
			for range r.IntN(20) {
				p := state.Pair{Key: key(), Value: []byte(fmt.Sprint(r.IntN(1000)))}
				if r.IntN(3) == 0 {
					p.Value = nil
				}
				changes[string(p.Key)] = p
			}
			var batch []state.Pair
			for _, p := range changes {
				batch = append(batch, p)
			}
			slices.SortFunc(batch, func(a, b state.Pair) int { return bytes.Compare(a.Key, b.Key) })
			must(t, model.Apply(batch))
			must(t, s.Apply(batch))
		}
		from, to := key(), key()
		if got, want := dump(t, s, from, to), dump(t, model, from, to); got != want {
			t.Fatalf("seed %d round %d: range %q to %q\ngot  %s\nwant %s", seed, round, from, to, got, want)
		}
	}
	wants(t, dump(t, s, nil, nil), dump(t, model, nil, nil))
	if viewed != nil {
		equal(t, all(t, viewed), shown)
		must(t, viewed.Close())
	}
}
