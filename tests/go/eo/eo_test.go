package eo

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/clock"
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

// roundKills is how many kills a round of a path has at most: its services are new, and what its sink holds is compared.
const roundKills = 25

// TestKills runs every path, or those that SINK_PATH names, with RIVERBED_EO_KILLS kills; with few of them, paths that others stand for are left
// out. With RIVERBED_EO_JOURNAL, a folder, a run that was broken off goes on behind the rounds that it had finished.
func TestKills(t *testing.T) {
	only := os.Getenv("SINK_PATH")
	kills, seed := number("RIVERBED_EO_KILLS", 3), uint64(number("RIVERBED_SEED", 1))
	for _, p := range paths {
		if only != "" && !strings.Contains(p.name, only) || only == "" && p.long && kills < roundKills {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			total := report{Path: p.name, Kills: map[string]int{}, Services: map[string]int{}}
			past := openJournal(t, p.name, kills, seed)
			aims := targets(kills, clock.NewRand(seed))
			for n := 0; len(aims) > 0; n++ {
				some := aims[:min(len(aims), roundKills)]
				aims = aims[len(some):]
				r, done := past.round(n)
				if !done {
					t.Run(strconv.Itoa(n), func(t *testing.T) { r = p.kill(t, some, seed+uint64(n), true) })
					if t.Failed() {
						return
					}
					past.finished(r)
				}
				if total.add(r); r.Lost+r.Twice > 0 {
					t.Error("the sink does not hold each row once")
				}
			}
			t.Log("total of ", total)
			for _, phase := range phases {
				if n := total.Kills[phase]; kills >= 100 && n < 5 {
					t.Errorf("%d kills in the phase %s, and there should be five", n, phase)
				}
			}
			past.close(t.Failed())
		})
	}
}

// TestKillsWithoutMarkers shows that the test finds what it looks for: sinks without markers double rows. In the short form one path does.
func TestKillsWithoutMarkers(t *testing.T) {
	only, short := os.Getenv("SINK_PATH"), number("RIVERBED_EO_KILLS", 3) < roundKills
	for _, p := range paths {
		if !slices.Contains(doubling, p.name) || only != "" && !strings.Contains(p.name, only) || only == "" && short && p.name != "kafka to kafka" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			r := p.kill(t, targets(8, clock.NewRand(1)), 1, false)
			t.Log(r)
			if r.Twice == 0 {
				t.Error("no row was doubled although the sink has no markers")
			}
		})
	}
}
