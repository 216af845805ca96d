package state_test

import (
	"testing"

	"github.com/riverbed/riverbed/state"
	"github.com/riverbed/riverbed/state/statetest"
)

func TestMemory(t *testing.T) {
	statetest.Run(t, func(*testing.T) state.Store { return state.NewMemory() })
}
