package fn

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// encodings is hashes and spellings of bytes.
var encodings = []*Scalar{
	hashFn("md5", "The MD5 hash in hexadecimal digits.", func(b []byte) []byte { h := md5.Sum(b); return h[:] }, "0cc175b9c0f1b6a831c399e269772661"),
	hashFn("sha1", "The SHA-1 hash in hexadecimal digits.", func(b []byte) []byte { h := sha1.Sum(b); return h[:] }, "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
	hashFn("sha256", "The SHA-256 hash in hexadecimal digits.", func(b []byte) []byte { h := sha256.Sum256(b); return h[:] }, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
	{Name: "base64", Category: Text, Summary: "Spell bytes in base 64.", Aliases: []string{"to_base64"}, Overloads: []Overload{strict(Types{types.Binary}, str, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte { return base64.StdEncoding.AppendEncode(dst, s.at(i)) })
	})}, Examples: []Example{ex("base64('abc'::BLOB)", "YWJj")}},
	{Name: "from_base64", Category: Text, Summary: "Read bytes spelled in base 64.", Overloads: []Overload{fallible(Types{str}, types.Binary, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte {
			out, err := base64.StdEncoding.AppendDecode(dst, s.at(i))
			if err != nil {
				c.failf(i, "'%s' is not spelled in base 64", s.at(i))
				return dst
			}
			return out
		})
	})}, Examples: []Example{ex("from_base64('YWJj')", "abc")}},
	{Name: "hex", Category: Text, Summary: "Spell bytes or a whole number in hexadecimal digits.", Aliases: []string{"to_hex"}, Overloads: []Overload{
		strict(Types{str}, str, hexText), strict(Types{types.Binary}, str, hexText),
		strict(Types{types.Int64}, str, baseText(16)), strict(Types{types.Uint64}, str, baseText(16))},
		Examples: []Example{ex("hex('abc')", "616263"), ex("hex(255)", "FF")}},
	{Name: "unhex", Category: Text, Summary: "Read bytes spelled in hexadecimal digits.", Aliases: []string{"from_hex"}, Overloads: []Overload{fallible(Types{str}, types.Binary, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte {
			t := s.at(i)
			if len(t)%2 == 1 {
				t = append([]byte{'0'}, t...)
			}
			out, err := hex.AppendDecode(dst, t)
			if err != nil {
				c.failf(i, "'%s' is not spelled in hexadecimal digits", s.at(i))
				return dst
			}
			return out
		})
	})}, Examples: []Example{ex("unhex('616263')", "abc")}},
	{Name: "bin", Category: Text, Summary: "Spell a whole number in binary digits.", Aliases: []string{"to_binary"}, Overloads: []Overload{
		strict(Types{types.Int64}, str, baseText(2)), strict(Types{types.Uint64}, str, baseText(2))}, Examples: []Example{ex("bin(5)", "101")}},
	{Name: "encode", Category: Text, Summary: "The bytes of a text.", Overloads: []Overload{strict(Types{str}, types.Binary, relabel)}, Examples: []Example{ex("encode('abc')", "abc")}},
	{Name: "decode", Category: Text, Summary: "Bytes as text; they must be UTF-8.", Overloads: []Overload{fallible(Types{types.Binary}, str, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte {
			if !utf8.Valid(s.at(i)) {
				c.failf(i, "the bytes are no UTF-8")
				return dst
			}
			return append(dst, s.at(i)...)
		})
	})}, Examples: []Example{ex("decode('abc'::BLOB)", "abc")}},
	{Name: "url_encode", Category: Text, Summary: "Escape a text for use in a URL.", Overloads: []Overload{strict(Types{str}, str, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte {
			return append(dst, strings.ReplaceAll(url.QueryEscape(s.str(i)), "+", "%20")...)
		})
	})}, Examples: []Example{ex("url_encode('a b')", "a%20b")}},
	{Name: "url_decode", Category: Text, Summary: "Undo url_encode.", Overloads: []Overload{fallible(Types{str}, str, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte {
			t, err := url.PathUnescape(s.str(i))
			if err != nil {
				c.failf(i, "'%s' is not escaped as in a URL", s.at(i))
				return dst
			}
			return append(dst, t...)
		})
	})}, Examples: []Example{ex("url_decode('a%20b')", "a b")}},
}

func hashFn(name, summary string, sum func([]byte) []byte, ofA string) *Scalar {
	k := func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte { return hex.AppendEncode(dst, sum(s.at(i))) })
	}
	return &Scalar{Name: name, Category: Text, Summary: summary, Overloads: []Overload{strict(Types{str}, str, k), strict(Types{types.Binary}, str, k)},
		Examples: []Example{ex(name+"('a')", ofA)}}
}

func hexText(c *Call) (arrow.Array, error) {
	s := textCol(c, 0)
	return texts(c, func(dst []byte, i int) []byte {
		for _, b := range s.at(i) {
			const digits = "0123456789ABCDEF"
			dst = append(dst, digits[b>>4], digits[b&15])
		}
		return dst
	})
}

// baseText spells the 64 bits of a number.
func baseText(base int) Kernel {
	return func(c *Call) (arrow.Array, error) {
		n := col[uint64](c, 0)
		return texts(c, func(dst []byte, i int) []byte {
			at := len(dst)
			dst = strconv.AppendUint(dst, n.at(i), base)
			for k := at; k < len(dst); k++ {
				if dst[k] >= 'a' {
					dst[k] -= 'a' - 'A'
				}
			}
			return dst
		})
	}
}
