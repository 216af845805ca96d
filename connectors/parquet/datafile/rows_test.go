package datafile

import (
	"encoding/base64"
	"testing"
)

func TestRows(t *testing.T) {
	b := NewRows(190)
	b.Add(0, 0)
	b.Add(63, 130)
	for _, c := range [][3]int64{{0, 192, 69}, {0, 1, 1}, {1, 63, 0}, {60, 70, 7}, {64, 128, 64}, {130, 500, 1}, {131, 500, 0}, {5, 5, 0}} {
		if got := b.Count(c[0], c[1]); got != c[2] {
			t.Errorf("count(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
	if b.Add(191, 192) || Rows(nil).Add(0, 0) {
		t.Error("a row without room was added")
	}
	less := b.Minus(Rows{1})
	if less.Has(0) || !less.Has(63) || !b.Has(0) {
		t.Error("minus")
	}
	if more := less.Or(Rows{1}); !more.Has(0) || more.All() != 69 || less.All() != 68 || Rows(nil).Or(b).All() != 69 {
		t.Error("or")
	}
}

func FuzzVector(f *testing.F) {
	for _, s := range []string{"0Npk5A==", "0DlkZAEAAAAAAAAAAAAAADowAAABAAAAAAACABAAAAABAAMABQA=",
		"0dM5ZAEAAAAAAAAAAAAAADowAAABAAAAAAAFABAAAAADAAQABwALABIAHQA="} {
		b, _ := base64.StdEncoding.DecodeString(s)
		f.Add(b, int64(100))
	}
	f.Fuzz(func(t *testing.T, data []byte, rows int64) {
		rows &= 1<<20 - 1
		b, err := ParseVector(data, rows)
		if err != nil {
			return
		}
		if n := b.Count(0, rows); n != b.All() {
			t.Fatal("rows behind the end of the file are deleted")
		}
	})
}
