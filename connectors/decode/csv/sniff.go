package csv

import (
	"bytes"
	"fmt"
	"io"

	"github.com/riverbed/riverbed/connectors/decode"
	"github.com/riverbed/riverbed/core/types"
)

// Sniffed is what a sample of a file says.
type Sniffed struct {
	Dialect Dialect
	Header  bool
	Fields  []types.Field
}

// Delimiters that are tried, in the order of preference.
var delimiters = []byte{',', '|', ';', '\t'}

// SniffDelim returns the delimiter by which the sample falls into the most columns, the same number in every record.
func SniffDelim(sample []byte, d Dialect, whole bool) byte {
	best, columns := byte(','), 1
	for _, delim := range delimiters {
		d.Delim = delim
		if n, even := width(sample, d, whole); even && n > columns {
			best, columns = delim, n
		}
	}
	return best
}

// width is the number of columns of the sample under a dialect; even says that all records have it.
func width(sample []byte, d Dialect, whole bool) (columns int, even bool) {
	r := NewReader(bytes.NewReader(sample), d)
	records, odd := 0, 0
	for {
		rec, err := r.Next()
		if err == io.EOF || err != nil && !whole {
			break
		}
		if err != nil {
			return 0, false
		}
		if !whole && r.eof && r.pos == len(r.buf) {
			break // the sample may cut the last record
		}
		if columns == 0 {
			columns = len(rec)
		}
		if len(rec) != columns {
			odd++
		}
		records++
	}
	return columns, records > 0 && odd*20 <= records // a few broken lines do not hide the delimiter; the read names them
}

// Options say what the user has decided already.
type Options struct {
	Header     *bool
	AllVarchar bool
	NullText   string
	Names      []string // of the columns, when the user gave them
	Records    int      // how many to look at
}

// Sniff reads the sample and guesses header and types. Types are tried in DuckDB's order; empty values fit all.
func Sniff(sample []byte, d Dialect, opt Options, whole bool) (Sniffed, error) {
	r := NewReader(bytes.NewReader(sample), d)
	var first [][]byte
	var all, rest []decode.Shapes // with and without the first record
	for n := 0; n < opt.Records; n++ {
		rec, err := r.Next()
		if err == io.EOF || err != nil && !whole {
			break
		}
		if err != nil {
			return Sniffed{}, err
		}
		if n > 0 && !whole && r.eof && r.pos == len(r.buf) {
			break
		}
		if n == 0 {
			all, rest = make([]decode.Shapes, len(rec)), make([]decode.Shapes, len(rec))
		}
		for i, f := range rec[:min(len(rec), len(all))] {
			if n == 0 {
				first = append(first, bytes.Clone(f.Text))
			}
			if len(f.Text) == 0 || string(f.Text) == opt.NullText {
				continue
			}
			all[i].See(f.Text)
			if n > 0 {
				rest[i].See(f.Text)
			}
		}
	}
	s := Sniffed{Dialect: d}
	if opt.Header != nil {
		s.Header = *opt.Header
	} else {
		s.Header = guessHeader(first, all, rest)
	}
	shapes := all
	if s.Header {
		shapes = rest
	}
	for i := range shapes {
		f := types.Field{Name: fmt.Sprintf("column%d", i), Type: types.String}
		if len(shapes) > 10 {
			f.Name = fmt.Sprintf("column%0*d", len(fmt.Sprint(len(shapes)-1)), i)
		}
		if s.Header && len(first[i]) > 0 {
			f.Name = string(first[i])
		}
		if i < len(opt.Names) {
			f.Name = opt.Names[i]
		}
		if !opt.AllVarchar {
			f.Type = shapes[i].Type(notUUID)
		}
		s.Fields = append(s.Fields, f)
	}
	s.Fields = types.DistinctNames(s.Fields)
	return s, nil
}

// notUUID: DuckDB does not guess UUID in CSV.
func notUUID(k types.Kind) bool { return k != types.UUID }

// guessHeader: the first record is a header when it breaks the type of a column below it, or when all is text.
func guessHeader(first [][]byte, all, rest []decode.Shapes) bool {
	textual := true
	for i := range rest {
		below := rest[i].Type(notUUID)
		if !rest[i].Any() || below.Kind == types.Varchar {
			continue
		}
		textual = false
		if len(first[i]) > 0 && all[i].Type(notUUID).Kind != below.Kind {
			if all[i].Type(notUUID).Kind == types.Varchar {
				return true
			}
		}
	}
	if !textual {
		return false
	}
	// All text: a header, unless a value of it is missing or numbers stand in it.
	for i, cell := range first {
		var s decode.Shapes
		if s.See(cell); len(cell) == 0 || s.Type(notUUID).Kind != types.Varchar && rest[i].Any() {
			return false
		}
	}
	return len(first) > 0
}
