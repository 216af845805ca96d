package files

import (
	"bytes"
	"context"
	"io"

	"github.com/riverbed/riverbed/core/errs"
)

// packers are the programs that make compressed files, with the bytes that those begin with. No text does.
var packers = []struct{ name, magic string }{
	{"gzip", "\x1f\x8b"}, {"zstd", "\x28\xb5\x2f\xfd"}, {"xz", "\xfd7zXZ\x00"}, {"lz4", "\x04\x22\x4d\x18"}, {"zip", "PK\x03\x04"},
	{"bzip2", "BZh"},
}

// notPacked refuses a compressed file of a format of text, which would be read as broken records.
func notPacked(ctx context.Context, format Format, ref Ref) error {
	if format.SelfDescribing() {
		return nil
	}
	r, err := ref.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	head := make([]byte, 6)
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return errs.New(errs.Source, "read", "cannot read %q: %w", ref.Name(), err)
	}
	for _, p := range packers {
		if bytes.HasPrefix(head[:n], []byte(p.magic)) && (p.name != "bzip2" || n > 3 && '1' <= head[3] && head[3] <= '9') {
			return errs.New(errs.Source, "open", "the %s file %q is compressed with %s, which is not read", format.Name(), ref.Name(), p.name).
				WithHint("unpack it first, or write Parquet, which is compressed within")
		}
	}
	return nil
}
