package parquet

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// readAhead is how many bytes of a column chunk are read at a time; most chunks are smaller.
const readAhead = 1 << 20

// mostPage bounds the size that a page may claim, against headers that are broken.
const mostPage = 1 << 30

// pageReader reads the pages of one column chunk. A chunk's bytes are read once, many pages at a time, and a page is decompressed
// from where they lie.
type pageReader struct {
	src   io.ReaderAt
	codec compress.Codec // nil: uncompressed

	at, end int64  // what of the file has not been read
	window  []byte // what has been, from the next page on
	whole   []byte // the window's buffer
	body    []byte // the buffer of the current page
}

// page is one page: its header and its decompressed bytes, which hold until the next one is read.
type page struct {
	header pageHeader
	data   []byte
}

func newPageReader(src io.ReaderAt, size int64, chunk *metadata.ColumnChunkMetaData, writer *metadata.AppVersion) (*pageReader, error) {
	from := chunk.DataPageOffset()
	if d := chunk.DictionaryPageOffset(); chunk.HasDictionaryPage() && d > 0 && d < from {
		from = d
	}
	n := chunk.TotalCompressedSize()
	if writer.LessThan(metadata.Parquet816FixedVersion) {
		n += 100 // parquet-mr up to 1.2.8 left the header of the dictionary page out of the size
	}
	if from < 0 || n < 0 || from > size {
		return nil, fmt.Errorf("its pages are said to lie outside of the file")
	}
	p := &pageReader{src: src, at: from, end: min(from+n, size)}
	if c := chunk.Compression(); c != compress.Codecs.Uncompressed {
		var err error
		if p.codec, err = compress.GetCodec(c); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// have makes the window hold n bytes, or all that are left of the chunk.
func (p *pageReader) have(n int) error {
	if len(p.window) >= n || p.at == p.end {
		return nil
	}
	size := int(min(int64(max(n, readAhead)), int64(len(p.window))+p.end-p.at))
	to := p.whole
	if cap(to) < size {
		to = grab(size)
	}
	to = to[:size]
	k := copy(to, p.window)
	if cap(p.whole) < size {
		giveBack(p.whole)
	}
	p.whole = to
	got, err := p.src.ReadAt(to[k:], p.at)
	if err == io.EOF && got == len(to)-k {
		err = nil
	}
	if err == io.EOF {
		return errTruncated
	}
	p.at += int64(got)
	p.window = to
	return err
}

// next reads the next page.
func (p *pageReader) next() (out page, err error) {
	for want := 512; ; want *= 8 { // statistics in the header may be long
		if err := p.have(want); err != nil {
			return out, err
		}
		if len(p.window) == 0 {
			return out, fmt.Errorf("a column has fewer values than the row group has rows")
		}
		n, err := out.header.read(p.window)
		if err == nil {
			p.window = p.window[n:]
			break
		}
		if len(p.window) < want || want > mostPage {
			return out, err
		}
	}
	h := &out.header
	if h.packed < 0 || h.size < 0 || h.packed > mostPage || h.size > mostPage {
		return out, errTruncated
	}
	if err := p.have(h.packed); err != nil {
		return out, err
	}
	if len(p.window) < h.packed {
		return out, errTruncated
	}
	data := p.window[:h.packed]
	p.window = p.window[h.packed:]
	plain := 0 // levels before the values, never compressed in pages of version 2
	if h.kind == dataPage2 {
		if plain = h.defBytes + h.repBytes; h.defBytes < 0 || h.repBytes < 0 || plain > len(data) || plain > h.size {
			return out, errTruncated
		}
	}
	if p.codec == nil || h.kind == dataPage2 && !h.compressed || h.size == plain {
		out.data = data
		return out, nil
	}
	if cap(p.body) < h.size {
		giveBack(p.body)
		p.body = grab(h.size)
	}
	body := p.body[:h.size]
	copy(body, data[:plain])
	got, err := compress.Decode(p.codec, body[plain:], data[plain:])
	if err != nil {
		return out, err
	}
	if len(got) != h.size-plain {
		return out, errTruncated
	}
	if len(got) > 0 && &got[0] != &body[plain] { // the codec made a buffer of its own
		copy(body[plain:], got)
	}
	out.data = body
	return out, nil
}

func (p *pageReader) close() {
	giveBack(p.whole)
	giveBack(p.body)
	p.whole, p.body, p.window = nil, nil, nil
	p.at = p.end
}
