package avro

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// magic begins an object container file.
var magic = []byte("Obj\x01")

// mostBytes is what a block may hold when it is unpacked.
const mostBytes = 256 << 20

var errContainer = errors.New("the message is no Avro container: it does not begin with Obj and 1")

// ContainerSchema reads the schema of a message that is an object container file.
func ContainerSchema(msg []byte) (*Schema, error) {
	schema, _, err := container(msg)
	if err != nil {
		return nil, err
	}
	return ParseSchema(schema, nil)
}

// container opens an object container file of one record, and gives its schema's text and the record.
func container(msg []byte) (schema, record []byte, err error) {
	if !bytes.HasPrefix(msg, magic) {
		return nil, nil, errContainer
	}
	in := &input{data: msg, pos: len(magic)}
	codec := "null"
	err = in.blocks(func() error {
		key, err := in.bytes()
		if err != nil {
			return err
		}
		value, err := in.bytes()
		switch string(key) {
		case "avro.schema":
			schema = value
		case "avro.codec":
			codec = string(value)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if schema == nil {
		return nil, nil, errors.New("the container has no schema")
	}
	sync, err := in.take(16)
	if err != nil {
		return nil, nil, err
	}
	rows := int64(0)
	for in.pos < len(msg) {
		n, err := in.long()
		if err != nil {
			return nil, nil, err
		}
		data, err := in.bytes()
		if err != nil {
			return nil, nil, err
		}
		end, err := in.take(16)
		if err != nil {
			return nil, nil, err
		}
		if !bytes.Equal(sync, end) {
			return nil, nil, errors.New("a block of the container does not end with its mark")
		}
		if n < 0 || n > 1 || rows+n > 1 {
			return nil, nil, fmt.Errorf("the container holds several records, and a message is one row")
		}
		if rows += n; n == 1 {
			if record, err = unpack(codec, data); err != nil {
				return nil, nil, err
			}
		}
	}
	if rows == 0 {
		return nil, nil, errors.New("the container holds no record")
	}
	return schema, record, nil
}

func unpack(codec string, data []byte) ([]byte, error) {
	switch codec {
	case "null", "":
		return data, nil
	case "deflate":
		r := flate.NewReader(bytes.NewReader(data))
		out, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
		if err == nil && len(out) > mostBytes {
			err = fmt.Errorf("it holds more than %d bytes", mostBytes)
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking a block (deflate): %w", err)
		}
		return out, nil
	case "snappy":
		if len(data) < 4 {
			return nil, errShort
		}
		packed, sum := data[:len(data)-4], binary.BigEndian.Uint32(data[len(data)-4:])
		if n, err := snappy.DecodedLen(packed); err != nil || n > mostBytes {
			return nil, fmt.Errorf("unpacking a block (snappy): its length is wrong")
		}
		out, err := snappy.Decode(nil, packed)
		if err == nil && crc32.ChecksumIEEE(out) != sum {
			err = errors.New("its checksum is wrong")
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking a block (snappy): %w", err)
		}
		return out, nil
	case "zstandard":
		r, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(mostBytes), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		out, err := r.DecodeAll(data, nil)
		if err != nil {
			return nil, fmt.Errorf("unpacking a block (zstandard): %w", err)
		}
		return out, nil
	}
	return nil, fmt.Errorf("the container is packed with %q; null, deflate, snappy and zstandard are read", codec)
}
