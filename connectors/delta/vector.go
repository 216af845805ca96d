package delta

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/riverbed/riverbed/connectors/parquet/datafile"
)

// vectorRef names a deletion vector: the rows of a data file that are no longer in the table.
type vectorRef struct {
	Storage     string `json:"storageType"` // i: inline, u: a file of the table, p: a path
	Where       string `json:"pathOrInlineDv"`
	Offset      *int64 `json:"offset"`
	Size        int64  `json:"sizeInBytes"`
	Cardinality int64  `json:"cardinality"`
}

// id tells vectors apart; nil, no vector, has its own.
func (v *vectorRef) id() string {
	switch {
	case v == nil:
		return ""
	case v.Offset == nil:
		return v.Storage + v.Where
	}
	return v.Storage + v.Where + "@" + strconv.FormatInt(*v.Offset, 10)
}

// mostVector bounds the bytes of one vector: no file has that many rows.
const mostVector = 1 << 30

func (v *vectorRef) check() error {
	switch {
	case v == nil:
		return nil
	case v.Storage != "i" && v.Storage != "u" && v.Storage != "p":
		return fmt.Errorf("a deletion vector is stored as %q, which is none of i, u and p", v.Storage)
	case v.Size < 0 || v.Size > mostVector || v.Cardinality < 0 || v.Offset != nil && *v.Offset < 0:
		return fmt.Errorf("a deletion vector has the size %d and %d rows", v.Size, v.Cardinality)
	}
	return nil
}

// load reads a vector of a file of so many rows.
func (v *vectorRef) load(ctx context.Context, t *table, rows int64) (datafile.Rows, error) {
	if v == nil {
		return nil, nil
	}
	data, err := v.bytes(ctx, t)
	if err != nil {
		return nil, err
	}
	b, err := datafile.ParseVector(data, rows)
	if err != nil {
		return nil, err
	}
	if n := b.All(); n != v.Cardinality {
		return nil, fmt.Errorf("it holds %d rows, and the log says %d", n, v.Cardinality)
	}
	return b, nil
}

func (v *vectorRef) bytes(ctx context.Context, t *table) ([]byte, error) {
	if v.Storage == "i" {
		data, err := z85(v.Where)
		if err == nil && int64(len(data)) < v.Size {
			err = errors.New("it is shorter than the log says")
		}
		if err != nil {
			return nil, err
		}
		return data[:v.Size], nil
	}
	path := v.Where
	if v.Storage == "u" {
		var err error
		if path, err = vectorFile(v.Where); err != nil {
			return nil, err
		}
	}
	store, name, err := t.locate(path)
	if err != nil {
		return nil, err
	}
	f, err := store.Open(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("the file %q: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	at := int64(1) // behind the version of the format
	if v.Offset != nil {
		at = *v.Offset
	}
	if f.Info().Size < at+v.Size+8 {
		return nil, fmt.Errorf("the file %q has %d bytes and is cut off", name, f.Info().Size)
	}
	buf := make([]byte, v.Size+8)
	if _, err := f.ReadAt(buf, at); err != nil && err != io.EOF {
		return nil, fmt.Errorf("the file %q: %w", name, err)
	}
	data, sum := buf[4:4+v.Size], binary.BigEndian.Uint32(buf[4+v.Size:])
	if int64(binary.BigEndian.Uint32(buf)) != v.Size || crc32.ChecksumIEEE(data) != sum {
		return nil, fmt.Errorf("the file %q does not hold at byte %d what was written there: its size or checksum is wrong", name, at)
	}
	return data, nil
}

// vectorFile is the name of a vector's file within the table: a folder, if there is one, and a UUID in Z85.
func vectorFile(where string) (string, error) {
	const uuid = 20 // characters
	if len(where) < uuid {
		return "", fmt.Errorf("%q names no file", where)
	}
	folder, text := where[:len(where)-uuid], where[len(where)-uuid:]
	id, err := z85(text)
	if err != nil || strings.ContainsAny(folder, "/\\") || folder == ".." {
		return "", fmt.Errorf("%q names no file", where)
	}
	name := fmt.Sprintf("deletion_vector_%x-%x-%x-%x-%x.bin", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	if folder != "" {
		name = folder + "/" + name
	}
	return name, nil
}

const z85Digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// z85 reads the text form of bytes that ZeroMQ's RFC 32 gives: five characters for four bytes.
func z85(s string) ([]byte, error) {
	if len(s)%5 != 0 {
		return nil, errors.New("a text in Z85 has a length that no bytes give")
	}
	out := make([]byte, 0, len(s)/5*4)
	for ; s != ""; s = s[5:] {
		word := uint64(0)
		for _, c := range []byte(s[:5]) {
			digit := strings.IndexByte(z85Digits, c)
			if digit < 0 {
				return nil, fmt.Errorf("a text in Z85 holds the character %q", c)
			}
			word = word*85 + uint64(digit)
		}
		if word >= 1<<32 {
			return nil, errors.New("a text in Z85 holds a number of more than four bytes")
		}
		out = binary.BigEndian.AppendUint32(out, uint32(word))
	}
	return out, nil
}
