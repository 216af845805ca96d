package main

import (
	"context"
	"testing"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// slowStart is a pipeline whose start returns late: the run is there, and nobody has it yet.
type slowStart struct {
	*riverbed.Pipeline
	begun chan *riverbed.Handle
	let   chan struct{}
}

func (s *slowStart) Start(ctx context.Context, until string) (*riverbed.Handle, error) {
	h, err := s.Pipeline.Start(ctx, until)
	s.begun <- h
	<-s.let
	return h, err
}

func TestClosingAPipelineWhileItStartsEndsItsRun(t *testing.T) {
	s, err := riverbed.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := t.Context()
	if _, err := s.Query(ctx, "CREATE STREAM s (a BIGINT) WITH (connector = 'memory')", nil); err != nil {
		t.Fatal(err)
	}
	q, err := s.Query(ctx, "SELECT a FROM s EMIT IMMEDIATE", nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := q.Sink(riverbed.SinkSpec{Func: func(context.Context, flow.Delta) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	slow := &slowStart{made, make(chan *riverbed.Handle, 1), make(chan struct{})}
	lent := newLoan(nil, nil)
	p := &pipeline{engine: slow, query: &query{engine: q, loan: lent}, loan: lent}

	started := make(chan error, 1)
	go func() { started <- p.start("") }()
	run := <-slow.begun
	if run == nil {
		t.Fatal("the pipeline does not start")
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	if n := lent.refs.Load(); n != 1 {
		t.Errorf("the loan has %d references while the run starts", n)
	}
	close(slow.let)
	if err := <-started; err == nil || errs.As(err).Kind != errs.Cancelled {
		t.Errorf("the start of a closed pipeline says %v", err)
	}
	if p.run != nil {
		t.Error("a closed pipeline has a run")
	}
	_ = run.Wait(ctx) // it returns: the run has ended
	if n := lent.refs.Load(); n != 0 {
		t.Errorf("the loan keeps %d references", n)
	}
	if err := p.start(""); err == nil {
		t.Error("a closed pipeline starts")
	}
}

func TestAClosedQueryStartsNothing(t *testing.T) {
	q := &query{loan: newLoan(nil, nil)}
	held, err := q.hold()
	if err != nil {
		t.Fatal(err)
	}
	if err := q.close(); err != nil {
		t.Fatal(err)
	}
	held.release() // the last: what was lent is given back
	if _, err := q.hold(); err == nil {
		t.Error("a loan that was given back is taken again")
	}
	if n := q.loan.refs.Load(); n != 0 {
		t.Errorf("the loan has %d references", n)
	}
}
