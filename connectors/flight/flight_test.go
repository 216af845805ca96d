package flight

import (
	"maps"
	"strings"
	"testing"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/errs"
)

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		options map[string]string
		want    string
	}{
		{map[string]string{}, "the options path, command, ticket"},
		{map[string]string{"path": "a", "command": "b"}, "2 of the options"},
		{map[string]string{"path": ","}, "the path is empty"},
		{map[string]string{"path": "a", "location": "http://a:1"}, "no address"},
		{map[string]string{"path": "a", "location": "grpc://"}, "no address"},
		{map[string]string{"path": "a", "location": "grpc://u:hidden@a:1"}, "holds a user"},
		{map[string]string{"path": "a", "tls_skip_verify": "true"}, "not encrypted"},
		{map[string]string{"path": "a", "location": "grpc+tls://a:1", "tls_key": "k"}, "one of tls_cert and tls_key"},
		{map[string]string{"path": "a", "password": "hidden"}, "one of user and password"},
		{map[string]string{"path": "a", "user": "u", "password": "hidden", "token": "hidden"}, "token and user"},
		{map[string]string{"path": "a", "timeout": "-1s"}, "not positive"},
		{map[string]string{"path": "a", "headers": "X-Key=hidden"}, "one of the headers"},
		{map[string]string{"path": "a", "headers": "hidden"}, "one of the headers"},
	} {
		given := map[string]string{"location": "grpc://127.0.0.1:1"}
		maps.Copy(given, c.options)
		_, err := ct.TryRelation(Source, given)
		if !errs.Is(err, errs.Usage) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v: %v", c.options, err)
		}
	}
	_, err := ct.TryRelation(Source, map[string]string{"location": "grpc+tls://a:1", "path": "a", "token": "t", "headers": "x-key=v, y=w"})
	if !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "lives in the Python package") {
		t.Errorf("without a host: %v", err)
	}
}
