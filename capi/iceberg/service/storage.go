package service

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	icebergio "github.com/apache/iceberg-go/io"

	"github.com/riverbed/riverbed/core/objstore"
)

// Files go through ours: S3 by the requests that the engine makes too, without the SDKs of other clouds, and local files are synced, for a commit that a
// crash of the machine takes back is none.
func init() {
	for _, scheme := range []string{"", "file"} {
		icebergio.Unregister(scheme)
		icebergio.Register(scheme, func(context.Context, *url.URL, map[string]string) (icebergio.IO, error) { return local{}, nil })
	}
	for _, scheme := range []string{"s3", "s3a"} {
		icebergio.Register(scheme, func(ctx context.Context, _ *url.URL, _ map[string]string) (icebergio.IO, error) {
			return bucket{ctx}, nil
		})
	}
}

// local is the file system, where what was closed is durable. Names are taken as they are written, as the engine and other clients of Iceberg take them: a
// folder k=a%2Fb is called so. LocalFS decodes what begins with file: so it gets plain paths.
type local struct{ icebergio.LocalFS }

func (l local) Open(name string) (icebergio.File, error)   { return l.LocalFS.Open(plainPath(name)) }
func (l local) ReadFile(name string) ([]byte, error)       { return l.LocalFS.ReadFile(plainPath(name)) }
func (l local) Remove(name string) error                   { return l.LocalFS.Remove(plainPath(name)) }
func (l local) RemoveAll(name string) error                { return l.LocalFS.RemoveAll(plainPath(name)) }
func (l local) ReadDir(name string) ([]fs.DirEntry, error) { return l.LocalFS.ReadDir(plainPath(name)) }
func (l local) MkdirAll(name string) error                 { return l.LocalFS.MkdirAll(plainPath(name)) }
func (l local) Mkdir(name string) error                    { return l.LocalFS.Mkdir(plainPath(name)) }
func (l local) Stat(name string) (fs.FileInfo, error)      { return l.LocalFS.Stat(plainPath(name)) }
func (l local) WalkDir(root string, f fs.WalkDirFunc) error {
	return l.LocalFS.WalkDir(plainPath(root), f)
}

type syncedFile struct{ *os.File }

func (f syncedFile) Close() error {
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.File.Close())
	}
	if err := f.File.Close(); err != nil {
		return err
	}
	return syncFolder(f.Name())
}

// syncFolder makes the name of a file durable.
func syncFolder(name string) error {
	d, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (l local) Create(name string) (icebergio.FileWriter, error) {
	w, err := l.LocalFS.Create(plainPath(name))
	if err != nil {
		return nil, err
	}
	if f, ok := w.(*os.File); ok {
		return syncedFile{f}, nil
	}
	return w, nil
}

func (l local) WriteFile(name string, data []byte) error {
	w, err := l.Create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.Close())
	}
	return w.Close()
}

func (l local) Rename(from, to string) error {
	if err := l.LocalFS.Rename(plainPath(from), plainPath(to)); err != nil {
		return err
	}
	return syncFolder(plainPath(to))
}

func (l local) RenameNoReplace(from, to string) error {
	if err := l.LocalFS.RenameNoReplace(plainPath(from), plainPath(to)); err != nil {
		return err
	}
	return syncFolder(plainPath(to))
}

func plainPath(name string) string {
	rest, ok := strings.CutPrefix(name, "file:")
	if !ok {
		return name
	}
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		rest = strings.TrimPrefix(after, "localhost")
	}
	return rest
}

// bucket is S3 as iceberg-go sees it, for the time of one request.
type bucket struct{ ctx context.Context }

func (b bucket) Open(name string) (icebergio.File, error) {
	s, key, err := objstore.For(name)
	if err != nil {
		return nil, err
	}
	f, err := s.Open(b.ctx, key)
	if err != nil {
		return nil, err
	}
	size := f.Info().Size
	object := &object{file: f, SectionReader: io.NewSectionReader(f, 0, size), info: f.Info()}
	if strings.HasSuffix(name, ".avro") || strings.HasSuffix(name, ".json") { // read from end to end: in one request
		data := make([]byte, size)
		if _, err := f.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
			return nil, errors.Join(err, f.Close())
		}
		object.SectionReader = io.NewSectionReader(bytes.NewReader(data), 0, size)
	}
	return object, nil
}

func (b bucket) ReadFile(name string) ([]byte, error) {
	s, key, err := objstore.For(name)
	if err != nil {
		return nil, err
	}
	return objstore.Get(b.ctx, s, key)
}

func (b bucket) Create(name string) (icebergio.FileWriter, error) {
	return &pending{name: name, ctx: b.ctx}, nil
}

func (b bucket) WriteFile(name string, data []byte) error {
	s, key, err := objstore.For(name)
	if err != nil {
		return err
	}
	return objstore.Put(b.ctx, s, key, data)
}

func (b bucket) Remove(name string) error {
	s, key, err := objstore.For(name)
	if err != nil {
		return err
	}
	return s.Delete(context.WithoutCancel(b.ctx), key)
}

// object is an open object.
type object struct {
	*io.SectionReader
	file objstore.File
	info objstore.Info
}

func (o *object) Close() error               { return o.file.Close() }
func (o *object) Stat() (fs.FileInfo, error) { return described{o.info}, nil }

// pending is an object being written: metadata is small, so it is put at once when it is whole.
type pending struct {
	bytes.Buffer
	name string
	ctx  context.Context
}

func (p *pending) Close() error { return bucket{p.ctx}.WriteFile(p.name, p.Bytes()) }
