package kernels

import (
	"bytes"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Comparisons write one bit a row into out, which is zero and has BitBytes(n) bytes. An argument of length 1 stands for
// every row. "Less" and "equal" are enough: the others follow by swapping the arguments and inverting the bits.

// Eq compares whole numbers for equality.
func Eq[T Integer](out []byte, a, b []T, n int) {
	i := 0
	switch {
	case len(b) == 1:
		c := b[0]
		a = a[:n]
		for ; i+8 <= n; i += 8 {
			x := a[i : i+8 : i+8]
			out[i>>3] = bit(x[0] == c) |
				bit(x[1] == c)<<1 |
				bit(x[2] == c)<<2 |
				bit(x[3] == c)<<3 |
				bit(x[4] == c)<<4 |
				bit(x[5] == c)<<5 |
				bit(x[6] == c)<<6 |
				bit(x[7] == c)<<7
		}
	case len(a) == 1:
		c := a[0]
		b = b[:n]
		for ; i+8 <= n; i += 8 {
			y := b[i : i+8 : i+8]
			out[i>>3] = bit(c == y[0]) |
				bit(c == y[1])<<1 |
				bit(c == y[2])<<2 |
				bit(c == y[3])<<3 |
				bit(c == y[4])<<4 |
				bit(c == y[5])<<5 |
				bit(c == y[6])<<6 |
				bit(c == y[7])<<7
		}
	default:
		a, b = a[:n], b[:n]
		for ; i+8 <= n; i += 8 {
			x, y := a[i:i+8:i+8], b[i:i+8:i+8]
			out[i>>3] = bit(x[0] == y[0]) |
				bit(x[1] == y[1])<<1 |
				bit(x[2] == y[2])<<2 |
				bit(x[3] == y[3])<<3 |
				bit(x[4] == y[4])<<4 |
				bit(x[5] == y[5])<<5 |
				bit(x[6] == y[6])<<6 |
				bit(x[7] == y[7])<<7
		}
	}
	am, bm := Mask(a), Mask(b)
	for ; i < n; i++ {
		x, y := a[i&am], b[i&bm]
		out[i>>3] |= bit(x == y) << (i & 7)
	}
}

// Lt compares whole numbers.
func Lt[T Integer](out []byte, a, b []T, n int) {
	i := 0
	switch {
	case len(b) == 1:
		c := b[0]
		a = a[:n]
		for ; i+8 <= n; i += 8 {
			x := a[i : i+8 : i+8]
			out[i>>3] = bit(x[0] < c) |
				bit(x[1] < c)<<1 |
				bit(x[2] < c)<<2 |
				bit(x[3] < c)<<3 |
				bit(x[4] < c)<<4 |
				bit(x[5] < c)<<5 |
				bit(x[6] < c)<<6 |
				bit(x[7] < c)<<7
		}
	case len(a) == 1:
		c := a[0]
		b = b[:n]
		for ; i+8 <= n; i += 8 {
			y := b[i : i+8 : i+8]
			out[i>>3] = bit(c < y[0]) |
				bit(c < y[1])<<1 |
				bit(c < y[2])<<2 |
				bit(c < y[3])<<3 |
				bit(c < y[4])<<4 |
				bit(c < y[5])<<5 |
				bit(c < y[6])<<6 |
				bit(c < y[7])<<7
		}
	default:
		a, b = a[:n], b[:n]
		for ; i+8 <= n; i += 8 {
			x, y := a[i:i+8:i+8], b[i:i+8:i+8]
			out[i>>3] = bit(x[0] < y[0]) |
				bit(x[1] < y[1])<<1 |
				bit(x[2] < y[2])<<2 |
				bit(x[3] < y[3])<<3 |
				bit(x[4] < y[4])<<4 |
				bit(x[5] < y[5])<<5 |
				bit(x[6] < y[6])<<6 |
				bit(x[7] < y[7])<<7
		}
	}
	am, bm := Mask(a), Mask(b)
	for ; i < n; i++ {
		x, y := a[i&am], b[i&bm]
		out[i>>3] |= bit(x < y) << (i & 7)
	}
}

// EqFloat compares floats for equality: NaN equals NaN.
func EqFloat[T Float](out []byte, a, b []T, n int) {
	i := 0
	switch {
	case len(b) == 1:
		c := b[0]
		a = a[:n]
		for ; i+8 <= n; i += 8 {
			x := a[i : i+8 : i+8]
			out[i>>3] = eqFloat(x[0], c) |
				eqFloat(x[1], c)<<1 |
				eqFloat(x[2], c)<<2 |
				eqFloat(x[3], c)<<3 |
				eqFloat(x[4], c)<<4 |
				eqFloat(x[5], c)<<5 |
				eqFloat(x[6], c)<<6 |
				eqFloat(x[7], c)<<7
		}
	case len(a) == 1:
		c := a[0]
		b = b[:n]
		for ; i+8 <= n; i += 8 {
			y := b[i : i+8 : i+8]
			out[i>>3] = eqFloat(c, y[0]) |
				eqFloat(c, y[1])<<1 |
				eqFloat(c, y[2])<<2 |
				eqFloat(c, y[3])<<3 |
				eqFloat(c, y[4])<<4 |
				eqFloat(c, y[5])<<5 |
				eqFloat(c, y[6])<<6 |
				eqFloat(c, y[7])<<7
		}
	default:
		a, b = a[:n], b[:n]
		for ; i+8 <= n; i += 8 {
			x, y := a[i:i+8:i+8], b[i:i+8:i+8]
			out[i>>3] = eqFloat(x[0], y[0]) |
				eqFloat(x[1], y[1])<<1 |
				eqFloat(x[2], y[2])<<2 |
				eqFloat(x[3], y[3])<<3 |
				eqFloat(x[4], y[4])<<4 |
				eqFloat(x[5], y[5])<<5 |
				eqFloat(x[6], y[6])<<6 |
				eqFloat(x[7], y[7])<<7
		}
	}
	am, bm := Mask(a), Mask(b)
	for ; i < n; i++ {
		x, y := a[i&am], b[i&bm]
		out[i>>3] |= eqFloat(x, y) << (i & 7)
	}
}

// LtFloat orders floats: NaN lies above all numbers.
func LtFloat[T Float](out []byte, a, b []T, n int) {
	i := 0
	switch {
	case len(b) == 1 && b[0] == b[0]: // no NaN: one comparison a row says it
		c := b[0]
		a = a[:n]
		for ; i+8 <= n; i += 8 {
			x := a[i : i+8 : i+8]
			out[i>>3] = bit(x[0] < c) |
				bit(x[1] < c)<<1 |
				bit(x[2] < c)<<2 |
				bit(x[3] < c)<<3 |
				bit(x[4] < c)<<4 |
				bit(x[5] < c)<<5 |
				bit(x[6] < c)<<6 |
				bit(x[7] < c)<<7
		}
	case len(a) == 1 && a[0] == a[0]:
		c := a[0]
		b = b[:n]
		for ; i+8 <= n; i += 8 {
			y := b[i : i+8 : i+8]
			out[i>>3] = bit(!(y[0] <= c)) |
				bit(!(y[1] <= c))<<1 |
				bit(!(y[2] <= c))<<2 |
				bit(!(y[3] <= c))<<3 |
				bit(!(y[4] <= c))<<4 |
				bit(!(y[5] <= c))<<5 |
				bit(!(y[6] <= c))<<6 |
				bit(!(y[7] <= c))<<7
		}
	case len(b) == 1:
		c := b[0]
		a = a[:n]
		for ; i+8 <= n; i += 8 {
			x := a[i : i+8 : i+8]
			out[i>>3] = ltFloat(x[0], c) |
				ltFloat(x[1], c)<<1 |
				ltFloat(x[2], c)<<2 |
				ltFloat(x[3], c)<<3 |
				ltFloat(x[4], c)<<4 |
				ltFloat(x[5], c)<<5 |
				ltFloat(x[6], c)<<6 |
				ltFloat(x[7], c)<<7
		}
	case len(a) == 1:
		c := a[0]
		b = b[:n]
		for ; i+8 <= n; i += 8 {
			y := b[i : i+8 : i+8]
			out[i>>3] = ltFloat(c, y[0]) |
				ltFloat(c, y[1])<<1 |
				ltFloat(c, y[2])<<2 |
				ltFloat(c, y[3])<<3 |
				ltFloat(c, y[4])<<4 |
				ltFloat(c, y[5])<<5 |
				ltFloat(c, y[6])<<6 |
				ltFloat(c, y[7])<<7
		}
	default:
		a, b = a[:n], b[:n]
		for ; i+8 <= n; i += 8 {
			x, y := a[i:i+8:i+8], b[i:i+8:i+8]
			out[i>>3] = ltFloat(x[0], y[0]) |
				ltFloat(x[1], y[1])<<1 |
				ltFloat(x[2], y[2])<<2 |
				ltFloat(x[3], y[3])<<3 |
				ltFloat(x[4], y[4])<<4 |
				ltFloat(x[5], y[5])<<5 |
				ltFloat(x[6], y[6])<<6 |
				ltFloat(x[7], y[7])<<7
		}
	}
	am, bm := Mask(a), Mask(b)
	for ; i < n; i++ {
		x, y := a[i&am], b[i&bm]
		out[i>>3] |= ltFloat(x, y) << (i & 7)
	}
}

// eqFloat and ltFloat do not branch: a comparison is one instruction, a mispredicted branch costs twenty.
func eqFloat[T Float](x, y T) byte { return bit(x == y) | bit(x != x)&bit(y != y) }
func ltFloat[T Float](x, y T) byte { return bit(x < y) | bit(x == x)&bit(y != y) }

// Invert inverts bits in place.
func Invert(b []byte, n int) {
	for i := range b {
		b[i] = ^b[i]
	}
	if len(b) > 0 {
		TrimBits(b, n)
	}
}

// EqWide compares 128-bit numbers for equality.
func EqWide(out []byte, a, b []decimal128.Num, n int) {
	if len(a) == 1 {
		a, b = b, a
	}
	i := 0
	if len(b) == 1 && len(a) >= n {
		c := b[0]
		a = a[:n]
		for ; i+8 <= n; i += 8 {
			x := a[i : i+8 : i+8]
			out[i>>3] = eqWide(x[0], c) |
				eqWide(x[1], c)<<1 |
				eqWide(x[2], c)<<2 |
				eqWide(x[3], c)<<3 |
				eqWide(x[4], c)<<4 |
				eqWide(x[5], c)<<5 |
				eqWide(x[6], c)<<6 |
				eqWide(x[7], c)<<7
		}
	}
	am, bm := Mask(a), Mask(b)
	for ; i < n; i++ {
		out[i>>3] |= eqWide(a[i&am], b[i&bm]) << (i & 7)
	}
}

// LtWide orders signed 128-bit numbers.
func LtWide(out []byte, a, b []decimal128.Num, n int) {
	i := 0
	switch {
	case len(b) == 1 && len(a) >= n:
		c := b[0]
		a = a[:n]
		for ; i+8 <= n; i += 8 {
			x := a[i : i+8 : i+8]
			out[i>>3] = ltWide(x[0], c) |
				ltWide(x[1], c)<<1 |
				ltWide(x[2], c)<<2 |
				ltWide(x[3], c)<<3 |
				ltWide(x[4], c)<<4 |
				ltWide(x[5], c)<<5 |
				ltWide(x[6], c)<<6 |
				ltWide(x[7], c)<<7
		}
	case len(a) == 1 && len(b) >= n:
		c := a[0]
		b = b[:n]
		for ; i+8 <= n; i += 8 {
			y := b[i : i+8 : i+8]
			out[i>>3] = ltWide(c, y[0]) |
				ltWide(c, y[1])<<1 |
				ltWide(c, y[2])<<2 |
				ltWide(c, y[3])<<3 |
				ltWide(c, y[4])<<4 |
				ltWide(c, y[5])<<5 |
				ltWide(c, y[6])<<6 |
				ltWide(c, y[7])<<7
		}
	}
	am, bm := Mask(a), Mask(b)
	for ; i < n; i++ {
		out[i>>3] |= ltWide(a[i&am], b[i&bm]) << (i & 7)
	}
}

// eqWide and ltWide do not branch either. Signed numbers are in order as unsigned ones when their signs are turned round.
func eqWide(x, y decimal128.Num) byte {
	return bit(x.LowBits()^y.LowBits()|uint64(x.HighBits()^y.HighBits()) == 0)
}

func ltWide(x, y decimal128.Num) byte {
	const sign = 1 << 63
	_, borrow := bits.Sub64(x.LowBits(), y.LowBits(), 0)
	_, borrow = bits.Sub64(uint64(x.HighBits())^sign, uint64(y.HighBits())^sign, borrow)
	return byte(borrow)
}

// LtUWide orders unsigned 128-bit numbers.
func LtUWide(out []byte, a, b []decimal128.Num, n int) {
	am, bm := Mask(a), Mask(b)
	for i := range n {
		x, y := a[i&am], b[i&bm]
		_, borrow := bits.Sub64(x.LowBits(), y.LowBits(), 0)
		_, borrow = bits.Sub64(uint64(x.HighBits()), uint64(y.HighBits()), borrow)
		out[i>>3] |= byte(borrow) << (i & 7)
	}
}

// Texts is a column of strings or bytes: n+1 offsets into data. With two offsets it stands for every row.
type Texts struct {
	Offs []int32
	Data []byte
}

// At is the text of row i.
func (t *Texts) At(i int) []byte { return t.Data[t.Offs[i]:t.Offs[i+1]] }

// Mask makes an index reach a column of one text or of all rows alike.
func (t *Texts) Mask() int {
	if len(t.Offs) == 2 {
		return 0
	}
	return -1
}

// EqText compares bytes for equality.
func EqText(out []byte, a, b Texts, n int) {
	if len(a.Offs) == 2 {
		a, b = b, a
	}
	if len(b.Offs) == 2 && len(a.Offs) > n {
		want := b.At(0)
		offs := a.Offs[:n+1]
		from := offs[0]
		for i, to := range offs[1:] {
			if int(to-from) == len(want) && string(a.Data[from:to]) == string(want) {
				out[i>>3] |= 1 << (i & 7)
			}
			from = to
		}
		return
	}
	am, bm := a.Mask(), b.Mask()
	for i := range n {
		out[i>>3] |= bit(bytes.Equal(a.At(i&am), b.At(i&bm))) << (i & 7)
	}
}

// LtText orders bytes.
func LtText(out []byte, a, b Texts, n int) {
	am, bm := a.Mask(), b.Mask()
	for i := range n {
		out[i>>3] |= bit(bytes.Compare(a.At(i&am), b.At(i&bm)) < 0) << (i & 7)
	}
}

// LtBytes orders values of a fixed width, the UUID's 16 bytes.
func LtBytes(out []byte, a, b [][16]byte, n int) {
	am, bm := Mask(a), Mask(b)
	for i := range n {
		out[i>>3] |= bit(bytes.Compare(a[i&am][:], b[i&bm][:]) < 0) << (i & 7)
	}
}

// EqBytes compares values of a fixed width for equality.
func EqBytes(out []byte, a, b [][16]byte, n int) {
	am, bm := Mask(a), Mask(b)
	for i := range n {
		out[i>>3] |= bit(a[i&am] == b[i&bm]) << (i & 7)
	}
}
