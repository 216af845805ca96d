package connectors

import (
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/errs"
)

var declared = Options{
	{Name: "n", Type: Int, Default: "5"},
	{Name: "on", Type: Bool},
	{Name: "wait", Type: Duration},
	{Name: "list", Type: List},
	{Name: "how", Type: Enum, Values: []string{"fast", "slow"}},
	{Name: "home", Type: String, Env: "RIVERBED_TEST_HOME"},
	{Name: "password", Type: String, Secret: true},
	{Name: "must", Type: String, Required: true, Doc: "It must be there.", Example: "x"},
}

func TestParse(t *testing.T) {
	t.Setenv("RIVERBED_TEST_HOME", "h")
	t.Setenv("RIVERBED_TEST_A", "1")
	s, err := declared.Parse("it", map[string]string{"must": "a${RIVERBED_TEST_A}b${RIVERBED_TEST_A}", "on": "YES", "wait": "5 minutes", "list": " a, b,,c ", "how": "FAST"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Int("n") != 5 || !s.Bool("on") || s.Duration("wait") != 5*time.Minute || strings.Join(s.List("list"), "|") != "a|b|c" ||
		s.String("how") != "fast" || s.String("home") != "h" || s.String("must") != "a1b1" || s.Has("password") || !s.Has("n") {
		t.Errorf("settings %v", s.values)
	}
	if got := s.Shown()["must"]; got != "a${RIVERBED_TEST_A}b${RIVERBED_TEST_A}" {
		t.Errorf("shown %q", got)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ option, value, want string }{
		{"hoem", "x", `did you mean "home"?`}, {"n", "five", "whole number"}, {"on", "perhaps", "true or false"}, {"wait", "soon", "duration"},
		{"how", "fats", `did you mean "fast"?`}, {"home", "${RIVERBED_TEST_NOT_SET}", "RIVERBED_TEST_NOT_SET"},
	} {
		_, err := declared.Parse("it", map[string]string{"must": "x", c.option: c.value})
		if !errs.Is(err, errs.Usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %s: %v", c.option, c.value, err)
		}
	}
	if _, err := declared.Parse("it", nil); err == nil || !strings.Contains(err.Error(), "It must be there.") {
		t.Errorf("a missing option: %v", err)
	}
}

// A secret stands in no message and no listing, whether it was written or referred to.
func TestSecrets(t *testing.T) {
	secret := Options{{Name: "pin", Type: Int, Secret: true}}
	_, err := secret.Parse("it", map[string]string{"pin": "hush"})
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("the message is %v", err)
	}
	s, _ := secret.Parse("it", map[string]string{"pin": "1234"})
	if s.Shown()["pin"] != "***" || s.Int("pin") != 1234 {
		t.Errorf("shown %v", s.Shown())
	}
}
