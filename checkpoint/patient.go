package checkpoint

import (
	"context"
	"errors"
	"io"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// patiently does something that changes nothing, again where it failed for a reason that may pass and Options.Again has the patience.
func (s *Store) patiently(ctx context.Context, do func() error) error {
	if s.o.Again == nil {
		return do()
	}
	return s.o.Again(ctx, do)
}

// patientFile is a file of which a read that failed is tried again: to read a gigabyte from its start for the sake of one answer that was lost
// would often not come to an end.
type patientFile struct {
	objstore.File
	s    *Store
	ctx  context.Context
	name string
}

func (f patientFile) ReadAt(p []byte, off int64) (n int, err error) {
	_ = f.s.patiently(f.ctx, func() error {
		if n, err = f.File.ReadAt(p, off); err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		return storeFailed(f.ctx, errs.Source, "read", f.s.url(f.name), err)
	})
	return n, err
}
