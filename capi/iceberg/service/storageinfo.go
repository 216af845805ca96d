package service

import (
	"io/fs"
	"path"
	"time"

	"github.com/riverbed/riverbed/core/objstore"
)

// described is an object's description as a file's.
type described struct{ objstore.Info }

func (d described) Name() string       { return path.Base(d.Info.Name) }
func (d described) Size() int64        { return d.Info.Size }
func (d described) Mode() fs.FileMode  { return 0o444 }
func (d described) ModTime() time.Time { return d.Modified }
func (d described) IsDir() bool        { return false }
func (d described) Sys() any           { return nil }
