package state

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// storeOrder is the order of some keys of a table in the store: all begin with its prefix, of so many bytes, and a key group. Most are told apart by eight bytes behind what
// those of all groups begin with.
func storeOrder(prefix int, keys [][]byte) []int32 {
	type ranked struct {
		word  uint64
		at    int32
		group uint8
	}
	shared := 0
	if len(keys) > 0 {
		first := keys[0][prefix+1:]
		shared = len(first)
		for _, k := range keys {
			shared = common(first[:shared], k[prefix+1:])
		}
	}
	all := make([]ranked, len(keys))
	for i, k := range keys {
		var b [8]byte
		copy(b[:], k[prefix+1+shared:])
		all[i] = ranked{binary.BigEndian.Uint64(b[:]), int32(i), k[prefix]}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		switch {
		case a.group != b.group:
			return cmp.Compare(a.group, b.group)
		case a.word != b.word:
			return cmp.Compare(a.word, b.word)
		}
		return bytes.Compare(keys[a.at], keys[b.at])
	})
	order := make([]int32, len(keys))
	for i, r := range all {
		order[i] = r.at
	}
	return order
}

// common is how many bytes two texts begin with alike.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
