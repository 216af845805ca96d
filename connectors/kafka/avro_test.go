package kafka

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// registryOf answers like a schema registry; while down it fails.
func registryOf(t *testing.T, answers map[string]any) (url string, down *atomic.Bool, asked *atomic.Int64) {
	t.Helper()
	down, asked = &atomic.Bool{}, &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		user, pass, _ := r.BasicAuth()
		switch answer, ok := answers[r.URL.Path]; {
		case down.Load():
			http.Error(w, "down", http.StatusServiceUnavailable)
		case user == "u" && pass != "pw":
			http.Error(w, "no", http.StatusUnauthorized)
		case !ok:
			http.Error(w, `{"error_code":40403}`, http.StatusNotFound)
		default:
			_ = json.NewEncoder(w).Encode(answer)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, down, asked
}

func schemaAnswer(schema string) map[string]any { return map[string]any{"schema": schema} }

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Messages of several writers' schemas are read by one reader's schema.
func TestAvroFromARegistry(t *testing.T) {
	_, addr := broker(t, "t")
	var recs []*kgo.Record
	for _, msg := range []string{"0000000001f601d403", "0000000002d403f601", "0000000003f60102047879d403", "0000000003f60100d403", "0100000001f601", "000000006300", "0000000001f601", "0000000005f601d403"} {
		recs = append(recs, rec("t", 0, string(unhex(t, msg))))
	}
	produce(t, addr, nil, recs...)
	f := func(name, typ string) string { return fmt.Sprintf(`{"name":%q,"type":%s}`, name, typ) }
	record := func(fields ...string) string {
		return `{"type":"record","name":"r","fields":[` + strings.Join(fields, ",") + `]}`
	}
	reader := record(f("f2", `"long"`), f("f1", `"double"`), `{"name":"extra","type":"string","default":"d"}`, `{"name":"h","aliases":["g"],"type":["null","string"],"default":null}`)
	url, _, asked := registryOf(t, map[string]any{
		"/schemas/ids/1":                    schemaAnswer(record(f("f1", `"int"`), f("f2", `"int"`))),
		"/schemas/ids/2":                    map[string]any{"schema": record(f("f2", `"n.num"`), f("f1", `"int"`)), "references": []any{map[string]any{"name": "n.num", "subject": "num", "version": 3}}},
		"/subjects/num/versions/3":          schemaAnswer(`{"type":"enum","name":"num","namespace":"n","symbols":["a","b"]}`),
		"/schemas/ids/3":                    schemaAnswer(record(f("f1", `"long"`), f("g", `["null","string"]`), f("f2", `"int"`))),
		"/schemas/ids/5":                    map[string]any{"schema": "message M {}", "schemaType": "PROTOBUF"},
		"/subjects/t-value/versions/latest": schemaAnswer(record(f("f1", `"int"`), f("f2", `"int"`))),
	})
	options := map[string]string{"brokers": addr, "topic": "t", "format": "avro", "schema_registry": url, "avro_schema": reader}
	rows, bad := read(t, options)
	// The second schema's f2 is an enum, which no number is read from.
	if got, want := strings.Join(rows, " "), "234|123|d|NULL 234|123|d|xy 234|123|d|NULL"; got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
	if len(bad) != 5 || !slices.ContainsFunc(bad, func(b string) bool { return strings.Contains(b, "no such schema of the id 99") }) || !slices.ContainsFunc(bad, func(b string) bool { return strings.Contains(b, "PROTOBUF") }) {
		t.Errorf("bad %q", bad)
	}
	delete(options, "avro_schema")
	if s := ct.OpenStream(t, Source, options); ct.Columns(s.Fields()) != "f1 INTEGER, f2 INTEGER" {
		t.Errorf("columns %s", ct.Columns(s.Fields()))
	}
	if n := asked.Load(); n > 12 {
		t.Errorf("the registry was asked %d times", n)
	}
}

// A registry that is away is no fault of the messages: nothing is lost, and the error says that trying again may help.
func TestRegistryIsAway(t *testing.T) {
	_, addr := broker(t, "t")
	one, two := string(unhex(t, "000000000102")), string(unhex(t, "000000000202"))
	produce(t, addr, nil, rec("t", 0, one), rec("t", 0, two), rec("t", 0, one))
	schema := `{"type":"record","name":"r","fields":[{"name":"v","type":"int"}]}`
	url, down, _ := registryOf(t, map[string]any{"/schemas/ids/1": schemaAnswer(schema), "/schemas/ids/2": schemaAnswer(schema)})
	s := latest(t, map[string]string{"brokers": addr, "topic": "t", "format": "avro", "schema_registry": url}, types.Field{Name: "v", Type: types.Int32})
	r, err := s.Open(t.Context(), flow.Split{ID: "0"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	first, err := r.Read(t.Context(), 1)
	if err != nil || first.Batch.NumRows() != 1 {
		t.Fatal(first, err)
	}
	down.Store(true)
	for range 2 {
		_, err = r.Read(t.Context(), 10)
		if wantError(t, err, errs.Source, "schema registry", "503"); !errs.As(err).Transient {
			t.Error("not transient")
		}
	}
	down.Store(false)
	rest, err := r.Read(t.Context(), 10)
	if err != nil || rest.Batch.NumRows() != 2 {
		t.Error(rest, err)
	}
}

func TestAvroOptions(t *testing.T) {
	_, addr := broker(t, "t", "bare")
	url, _, _ := registryOf(t, map[string]any{})
	file := filepath.Join(t.TempDir(), "s.avsc")
	if err := os.WriteFile(file, []byte(`{"type":"record","name":"r","fields":[{"name":"v","type":"int"},{"name":"s","type":"string"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	produce(t, addr, nil, rec("bare", 0, string(unhex(t, "02047879"))), rec("bare", 0, "\x04"))
	rows, bad := read(t, map[string]string{"brokers": addr, "topic": "bare", "format": "avro", "avro_schema": file})
	if strings.Join(rows, " ") != "1|xy" || len(bad) != 1 {
		t.Errorf("rows %v, bad %q", rows, bad)
	}
	for _, c := range []struct {
		options map[string]string
		kind    errs.Kind
		part    string
	}{
		{map[string]string{"avro_schema": "nowhere.avsc"}, errs.Source, "nowhere.avsc"},
		{map[string]string{"avro_schema": `{"type":"nothing"}`}, errs.Schema, "nothing"},
		{map[string]string{"schema_registry": "localhost"}, errs.Usage, "http://host:8081"},
		{map[string]string{"schema_registry": "http://u:secret@localhost"}, errs.Usage, "schema_registry_password"},
		{map[string]string{"schema_registry": url, "schema_registry_user": "u", "schema_registry_password": "wr0ng"}, errs.Source, "does not let us in"},
		{map[string]string{"schema_registry": url, "schema_timeout": "50ms"}, errs.Source, "was empty"},
		{map[string]string{"schema_registry": "http://127.0.0.1:1"}, errs.Source, "cannot be reached"},
	} {
		c.options["brokers"], c.options["topic"], c.options["format"] = addr, "t", "avro"
		_, err := open(c.options)
		wantError(t, err, c.kind, c.part)
		if err != nil && (strings.Contains(err.Error(), "wr0ng") || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("a password is in the message: %v", err)
		}
	}
}

// Containers have their schema inside, from which the columns are found; those of later versions are read by their names.
func TestAvroContainers(t *testing.T) {
	dir := os.Getenv("RIVERBED_TEST_PACKETS") // alert packets of the Zwicky Transient Facility
	var packets []string
	if dir != "" {
		files, err := filepath.Glob(filepath.Join(dir, "*.avro"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			packets = append(packets, string(b))
		}
	} else {
		for _, c := range [][2]string{{`{"name":"objectId","type":"string"},{"name":"candid","type":"long"}`, "\x06ZTF\x02"}, {`{"name":"candid","type":"long"},{"name":"more","type":["float","null"],"default":null},{"name":"objectId","type":"string"}`, "\x04\x02\x06ZTF"}} {
			schema := `{"type":"record","name":"alert","fields":[` + c[0] + `]}`
			head := "Obj\x01\x02\x16avro.schema" + string([]byte{byte(len(schema)<<1&0x7f | 0x80), byte(len(schema) >> 6)}) + schema + "\x00"
			sync := strings.Repeat("s", 16)
			packets = append(packets, head+sync+"\x02"+string([]byte{byte(len(c[1]) << 1)})+c[1]+sync)
		}
	}
	_, addr := broker(t, "t")
	for _, p := range packets {
		produce(t, addr, nil, rec("t", 0, p))
	}
	options := map[string]string{"brokers": addr, "topic": "t", "format": "avro"}
	rows, bad := read(t, options, types.Field{Name: "objectId", Type: types.String}, types.Field{Name: "candid", Type: types.Int64})
	if len(rows) != len(packets) || len(bad) > 0 || !strings.HasPrefix(rows[0], "ZTF") {
		t.Errorf("rows %v, bad %d", rows, len(bad))
	}
	rows, bad = read(t, options)
	if len(rows) != len(packets) || len(bad) > 0 {
		t.Errorf("%d rows, bad %v", len(rows), bad)
	}
}
