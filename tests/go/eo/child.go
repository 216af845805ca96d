package eo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/flow"
)

// childEnv holds what the child process runs; without it the program is the tests.
const childEnv = "RIVERBED_EO_CHILD"

// job is what a child runs.
type job struct {
	Settings   map[string]string
	Statements []string // the last one is an INSERT INTO the sink
	Until      string
	Markers    bool // false: sinks forget their markers, so that the test must fail
}

// child runs a pipeline in this process, which the parent ends when it likes. On standard output it tells each phase of each epoch and waits
// for a line on standard input before it goes on; at last it says "ended", or what failed.
func child(text string) int {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fmt.Println("failed", err)
		return 2
	}
	if !j.Markers {
		for i := range all.Sinks {
			all.Sinks[i].ExactlyOnce = false
		}
	}
	answers := bufio.NewReader(os.Stdin)
	var mu sync.Mutex
	checkpoint.Phase = func(phase string, epoch flow.Epoch) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println("phase", phase, epoch)
		_, _ = answers.ReadString('\n')
	}
	if err := j.run(); err != nil {
		fmt.Printf("failed %q\n", err.Error())
		return 1
	}
	fmt.Println("ended")
	return 0
}

func (j job) run() error {
	ctx := context.Background()
	s, err := riverbed.Open(j.Settings)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	var p *riverbed.Pipeline
	for _, text := range j.Statements {
		q, err := s.Query(ctx, text, nil)
		if err != nil {
			return err
		}
		if q != nil && q.Pipeline() {
			if p, err = q.AsPipeline(j.Markers); err != nil {
				return err
			}
		}
	}
	h, err := p.Start(ctx, j.Until)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		_ = h.Stop(false)
	}()
	return h.Wait(ctx)
}
