package decode

import (
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// Messages gathers rows from messages, one row each. Sub-packages of decode provide them.
type Messages interface {
	// Append decodes one message into the next row; on error no row is added. It keeps nothing of msg.
	Append(msg []byte) error
	// AppendNulls adds a row of NULLs.
	AppendNulls()
	Rows() int
	// Finish returns the columns gathered and starts again.
	Finish() []arrow.Array
}

// Raw takes each message as it is, in one column of VARCHAR, JSON or BLOB.
type Raw struct {
	b    *Bytes
	text bool
}

// NewRaw makes a decoder of the only column.
func NewRaw(fields []types.Field) (*Raw, error) {
	if len(fields) != 1 {
		return nil, fmt.Errorf("the format raw has one column, VARCHAR or BLOB; %d are declared", len(fields))
	}
	switch fields[0].Type.Kind {
	case types.Varchar:
		return &Raw{NewStrings(), true}, nil
	case types.Blob:
		return &Raw{NewBlobs(), false}, nil
	}
	return nil, fmt.Errorf("the column of the format raw is VARCHAR or BLOB, not %s", fields[0].Type)
}

// Append takes a message.
func (r *Raw) Append(msg []byte) error {
	if r.text && !utf8.Valid(msg) {
		return fmt.Errorf("the message is not UTF-8; declare the column BLOB to take any bytes")
	}
	return r.b.AppendText(msg)
}

// AppendNulls adds a row of NULL.
func (r *Raw) AppendNulls() { r.b.AppendNull() }

// Rows is the number of rows gathered.
func (r *Raw) Rows() int { return r.b.Len() }

// Finish returns the column.
func (r *Raw) Finish() []arrow.Array { return []arrow.Array{r.b.Finish()} }
