package state

import (
	"fmt"
	"strings"
	"testing"
)

// counting is a store that counts the keys that are read.
type counting struct {
	*Memory
	hot, cold int
}

func (c *counting) Get(keys [][]byte) ([][]byte, error) {
	for _, k := range keys {
		if strings.Contains(string(k), "hot") {
			c.hot++
		} else {
			c.cold++
		}
	}
	return c.Memory.Get(keys)
}

const (
	hotRows   = 1000
	otherRows = 40_000
)

// fullTable is a table with room for the hot rows and few more, of which all are in the store but for some cold ones.
func fullTable(t *testing.T) (x *coldTest, s *counting, step func(ks ...string)) {
	s = &counting{Memory: NewMemory()}
	x = &coldTest{cold: newTestTable(goodHash), store: s.Memory}
	x.cold.Limit(NewCold(func() (Store, error) { return s, nil }), "0", 1)
	x.cold.put(1, names("hot", 0, hotRows)...)
	limit := x.cold.Bytes() * 5 / 2
	step = func(ks ...string) {
		mustDo(t, x.cold.Fetch(x.cold.keys(ks...)))
		x.cold.put(1, ks...)
		mustDo(t, x.cold.Evict(limit))
	}
	for i := 0; i < otherRows; i += 1000 {
		step(names("cold", i, i+1000)...)
	}
	return x, s, step
}

func names(of string, from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint(of, " ", i))
	}
	return out
}

// TestRowsAskedForOnceDoNotPushOutOthers: once the hot rows are in memory, a scan of all the others, however long, has none of them read again.
func TestRowsAskedForOnceDoNotPushOutOthers(t *testing.T) {
	_, s, step := fullTable(t)
	for i := range 40 {
		step(names("hot", 0, hotRows)...)
		step(names("cold", 100*i, 100*(i+1))...)
	}
	s.hot, s.cold = 0, 0
	for i := 0; i < otherRows; i += 400 {
		step(names("cold", i, i+400)...)
		step(names("hot", i/10%hotRows, i/10%hotRows+40)...)
	}
	if s.cold < otherRows*9/10 {
		t.Fatalf("%d cold rows were read: most should have been out", s.cold)
	}
	if s.hot > 0 {
		t.Fatalf("a scan had %d hot rows read again", s.hot)
	}
}

// TestRowsAskedForAgainStay: rows that are asked for a second time are not read a third time, though others come in between.
func TestRowsAskedForAgainStay(t *testing.T) {
	_, s, step := fullTable(t)
	at := 0
	for range 20 { // the hand comes to know that what is there is in use
		step(names("hot", 0, hotRows)...)
		step(names("cold", at, at+200)...)
		at += 200
	}
	late := names("cold", 30_000, 30_050)
	reads := func(ks ...string) int {
		before := s.cold
		step(ks...)
		return s.cold - before
	}
	if n := reads(late...); n != 50 {
		t.Fatalf("%d rows of 50 were out", n)
	}
	reads(names("cold", 20_000, 20_200)...)
	reads(late...)
	for i := range 10 {
		step(names("hot", 0, hotRows)...)
		step(names("cold", 21_000+200*i, 21_200+200*i)...)
		if n := reads(late...); n != 0 {
			t.Fatalf("round %d: %d rows in use were read again", i, n)
		}
	}
}

// TestOtherRowsComeIntoUse: when other rows are in use than before, they take the room of those.
func TestOtherRowsComeIntoUse(t *testing.T) {
	_, s, step := fullTable(t)
	for i := range 40 {
		step(names("hot", 0, hotRows)...)
		step(names("cold", 100*i, 100*(i+1))...)
	}
	for range 20 {
		for i := 10_000; i < 10_000+hotRows; i += 500 {
			step(names("cold", i, i+500)...)
		}
	}
	s.cold = 0
	for i := 10_000; i < 10_000+hotRows; i += 500 {
		step(names("cold", i, i+500)...)
	}
	if s.cold > hotRows/50 {
		t.Fatalf("%d of %d rows in use are read each time", s.cold, hotRows)
	}
}
