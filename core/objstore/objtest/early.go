package objtest

import (
	"context"
	"errors"

	"github.com/riverbed/riverbed/core/objstore"
)

// Early is a store that shows a name before it is durable, as a file system does: while it fails, a put has done its work and says that it has not.
type Early struct {
	*objstore.Double
	Failing bool
	Keeps   []string // names that were made durable
}

// ErrDisk is what a failing Early says.
var ErrDisk = errors.New("the disk does not answer")

// PutIfAbsent puts, and fails behind that.
func (e *Early) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	err := e.Double.PutIfAbsent(ctx, name, data)
	if err == nil && e.Failing {
		err = ErrDisk
	}
	return err
}

// Keep makes a name durable.
func (e *Early) Keep(_ context.Context, name string) error {
	if e.Failing {
		return ErrDisk
	}
	e.Keeps = append(e.Keeps, name)
	return nil
}
