package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

func TestPositions(t *testing.T) {
	id := kadm.TopicID{1, 2, 255}
	for _, p := range []position{{7, -1, kadm.TopicID{}}, {7, 0, kadm.TopicID{}}, {1 << 40, 12, id}, {0, -1, id}} {
		if got, err := parsePosition(flow.Position(p.String())); err != nil || got != p {
			t.Errorf("%s is read as %v, %v", p, got, err)
		}
	}
	for _, bad := range []flow.Position{"", "x", "-1", "1@", "1@x", "1/!", "1/AQ", "1@-1"} {
		if _, err := parsePosition(bad); err == nil {
			t.Errorf("%q is a position", bad)
		}
	}
}

func adm(t *testing.T, addr string) *kadm.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// firstError reads until a read fails.
func firstError(t *testing.T, r flow.Reader) error {
	t.Helper()
	for {
		if _, err := r.Read(t.Context(), 10); err != nil {
			return err
		}
	}
}

func TestLostRecordsAreSkippedWhenTold(t *testing.T) {
	_, addr := broker(t, "t")
	produce(t, addr, nil, rec("t", 0, `{"v":1}`), rec("t", 0, `{"v":2}`), rec("t", 0, `{"v":3}`))
	if _, err := adm(t, addr).DeleteRecords(t.Context(), kadm.Offsets{"t": {0: {Topic: "t", At: 2}}}); err != nil {
		t.Fatal(err)
	}
	s := latest(t, map[string]string{"brokers": addr, "topic": "t", "lost_records": "skip"}, vInt)
	got := ct.Drain(t, s, flow.Split{ID: "0"}, "1", 10, 3)
	rows, bad := ct.Flat(got)
	if strings.Join(rows, " ") != "3" || len(bad) != 1 || !strings.Contains(bad[0], "the offsets 1 to 1 were removed") {
		t.Errorf("rows %v, bad %v", rows, bad)
	}
}

// What is lost is noticed also when the client has moved the offset by itself.
func TestLostRecordsAreNoticedInFetches(t *testing.T) {
	q := &queue{next: 5, news: make(chan struct{}, 1)}
	at := func(offset int64) []*kgo.Record { return []*kgo.Record{{Offset: offset}} }
	q.put(at(5), 0, nil)
	q.put(at(9), 8, nil)
	if q.err == nil {
		t.Error("the log begins behind the next offset, and nobody says so")
	}
	q = &queue{next: 5, news: make(chan struct{}, 1)}
	q.put(at(9), 5, nil)
	q.put(at(12), 8, nil)
	if q.err != nil || len(q.fetch) != 2 {
		t.Errorf("gaps of compaction: %v", q.err)
	}
}

func TestPositionsBeyondTheEnd(t *testing.T) {
	_, addr := broker(t, "t")
	produce(t, addr, nil, rec("t", 0, `{"v":1}`))
	s := ct.OpenStream(t, Source, map[string]string{"brokers": addr, "topic": "t", "lost_records": "skip"}, vInt)
	r, err := s.Open(t.Context(), flow.Split{ID: "0"}, "7")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	wantError(t, firstError(t, r), errs.Source, "has lost records", "it ends at 1", "read up to 7")
}

func TestTopicsThatAreMadeAnew(t *testing.T) {
	_, addr := broker(t, "t")
	produce(t, addr, nil, rec("t", 0, `{"v":1}`))
	open := func() flow.Stream {
		return ct.OpenStream(t, Source, map[string]string{"brokers": addr, "topic": "t"}, vInt)
	}
	old := open()
	r, err := old.Open(t.Context(), flow.Split{ID: "0"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, err := r.Read(t.Context(), 10)
	if err != nil || rows.Next == "" {
		t.Fatal(rows, err)
	}
	a := adm(t, addr)
	if _, err := a.DeleteTopic(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	_, err = old.Splits(t.Context())
	wantError(t, err, errs.Source, `no topic "t"`)
	if _, err := a.CreateTopic(t.Context(), 2, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	produce(t, addr, nil, rec("t", 0, `{"v":2}`), rec("t", 0, `{"v":3}`))
	_, err = old.Splits(t.Context()) // as the run asks every few seconds
	wantError(t, err, errs.Source, "was deleted and made anew")
	_, err = open().Open(t.Context(), flow.Split{ID: "0"}, rows.Next) // after a restart
	wantError(t, err, errs.Source, "was deleted and made anew", "new checkpoints")
	wantError(t, firstError(t, r), errs.Source, "no longer there")
}

// A stream that names another topic than its checkpoints is not one whose topic was made anew.
func TestStreamsOfAnotherTopic(t *testing.T) {
	_, addr := broker(t, "was", "is")
	produce(t, addr, nil, rec("was", 0, `{"v":1}`), rec("is", 0, `{"v":1}`))
	open := func(topic string, from flow.Position) (flow.Reader, error) {
		return ct.OpenStream(t, Source, map[string]string{"brokers": addr, "topic": topic}, vInt).Open(t.Context(), flow.Split{ID: "0"}, from)
	}
	r, err := open("was", "")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, err := r.Read(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	_, err = open("is", rows.Next)
	wantError(t, err, errs.State, `the checkpoints are of the topic "was"`, `reads the topic "is"`)
}

func TestAcknowledgedOffsetsAreShown(t *testing.T) {
	_, addr := broker(t, "t")
	a := adm(t, addr)
	for _, group := range []string{"", "watched"} {
		s := ct.OpenStream(t, Source, map[string]string{"brokers": addr, "topic": "t", "group_id": group}, vInt)
		if err := s.(flow.Acknowledger).Acknowledge(t.Context(), map[string]flow.Position{"0": "5@0/AQIDAAAAAAAAAAAAAAAAAA", "1": ""}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := a.FetchOffsets(t.Context(), "watched")
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := got.Lookup("t", 0); !ok || o.At != 5 || len(got["t"]) != 1 {
		t.Errorf("the group has %v", got)
	}
	if groups, err := a.ListGroups(t.Context()); err != nil || len(groups) != 1 {
		t.Errorf("groups %v, %v", groups, err)
	}
}

// certificate writes a certificate for 127.0.0.1 that signs itself, and its key.
func certificate(t *testing.T) (certPath, keyPath string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	certPath, keyPath = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, text := range map[string][]byte{certPath: certPEM, keyPath: keyPEM} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return certPath, keyPath, pair
}

func TestEncryptedConnectionsWithLogin(t *testing.T) {
	certPath, keyPath, pair := certificate(t)
	trusted := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	trusted.AddCert(leaf)
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "u", "pw"), kfake.Superuser("SCRAM-SHA-256", "u", "pw"), kfake.Superuser("SCRAM-SHA-512", "u", "pw"),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	options := func(more map[string]string) map[string]string {
		o := map[string]string{"brokers": c.ListenAddrs()[0], "topic": "t", "security_protocol": "SASL_SSL", "sasl_username": "u", "sasl_password": "pw",
			"ssl_ca_location": certPath, "ssl_certificate_location": certPath, "ssl_key_location": keyPath}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	for _, m := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		if _, err := open(options(map[string]string{"sasl_mechanism": m}), vInt); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
	_, err = open(options(map[string]string{"sasl_password": "wr0ng"}), vInt)
	wantError(t, err, errs.Source, "sasl options")
	if strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("the password is in the message: %v", err)
	}
	_, err = open(options(map[string]string{"ssl_key_location": certPath}), vInt)
	wantError(t, err, errs.Source, "ssl_certificate_location")
	_, err = open(options(map[string]string{"sasl_mechanism": "OAUTHBEARER"}), vInt)
	wantError(t, err, errs.Usage, "sasl_token")
}

func TestCompressedBatches(t *testing.T) {
	_, addr := broker(t, "t")
	want := 0
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		var recs []*kgo.Record
		for range 50 {
			recs = append(recs, rec("t", 0, `{"v":1,"pad":"`+strings.Repeat("x", 100)+`"}`))
		}
		want += len(recs)
		produce(t, addr, []kgo.Opt{kgo.ProducerBatchCompression(codec)}, recs...)
	}
	if rows, bad := read(t, map[string]string{"brokers": addr, "topic": "t"}, vInt); len(rows) != want || len(bad) > 0 {
		t.Errorf("%d rows of %d, bad %v", len(rows), want, bad)
	}
}

// A run that goes on misses nothing of partitions that were silent before, or that appeared while nobody read.
func TestLatestIsSettledOnce(t *testing.T) {
	for _, start := range []string{"latest", "2199-01-01"} {
		t.Run(start, func(t *testing.T) {
			_, addr := broker(t, "t")
			produce(t, addr, nil, rec("t", 0, `{"v":1}`))
			open := func() flow.Stream {
				return ct.OpenStream(t, Source, map[string]string{"brokers": addr, "topic": "t", "start": start}, vInt)
			}
			r, err := open().Open(t.Context(), flow.Split{ID: "0"}, "")
			if err != nil {
				t.Fatal(err)
			}
			rows, err := r.Read(t.Context(), 10)
			if err != nil || rows.Batch != nil || !strings.HasPrefix(string(rows.Next), "1") {
				t.Fatalf("the first read gives %+v, %v", rows, err)
			}
			r.Close()
			if _, err := adm(t, addr).UpdatePartitions(t.Context(), 3, "t"); err != nil {
				t.Fatal(err)
			}
			now := time.Now().AddDate(200, 0, 0)
			two, three := rec("t", 0, `{"v":2}`), rec("t", 2, `{"v":3}`)
			two.Timestamp, three.Timestamp = now, now
			produce(t, addr, nil, two, three)
			s, err := open().(flow.Resumer).Resumed().(flow.LatestStream).UntilLatest(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for split, from := range map[string]flow.Position{"0": rows.Next, "2": ""} {
				got, _ := ct.Flat(ct.Drain(t, s, flow.Split{ID: split}, from, 10, 3))
				if want := map[string]string{"0": "2", "2": "3"}[split]; strings.Join(got, " ") != want {
					t.Errorf("partition %s: %v", split, got)
				}
			}
		})
	}
}
