package eo

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		os.Exit(child(text))
	}
	os.Exit(m.Run())
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// TestKills runs every path, or the one that SINK_PATH names, with RIVERBED_EO_KILLS kills.
func TestKills(t *testing.T) {
	only := os.Getenv("SINK_PATH")
	kills, seed := number("RIVERBED_EO_KILLS", 3), uint64(number("RIVERBED_SEED", 1))
	for _, p := range paths {
		if only != "" && !strings.Contains(p.name, only) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			r := p.kill(t, kills, seed, true)
			t.Log(r)
			if r.Lost+r.Twice > 0 {
				t.Error("the sink does not hold each row once")
			}
		})
	}
}

// TestKillsWithoutMarkers shows that the test finds what it looks for: a sink without markers doubles rows.
func TestKillsWithoutMarkers(t *testing.T) {
	r := path{"kafka to kafka", kafkaToKafka}.kill(t, 6, 1, false)
	t.Log(r)
	if r.Twice == 0 {
		t.Error("no row was doubled although the sink has no markers")
	}
}
