package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/riverbed/riverbed/core/clock"
)

// tap receives what the server sends from a slot, some way ahead of the reader, and tells the server that we live, also while the
// reader is held up.
type tap struct {
	conn  *pgconn.PgConn
	clock clock.Clock
	out   chan tapped
	quit  chan struct{}
	wake  chan struct{} // something is to be told at once
	done  sync.WaitGroup

	flushed atomic.Uint64 // what the server may forget
	heard   atomic.Int64  // when something last came
	full    atomic.Bool   // the reader is behind
}

// tapped is a message of the log, or how far the server has read it.
type tapped struct {
	data   []byte
	behind pglogrepl.LSN // no message: all before this was sent
	err    error
}

// tapDepth is how many messages wait for the reader.
const tapDepth = 4 << 10

// A server is told something this often, unless it waits for less, and is given up when it has said nothing for silence.
const (
	statusEvery = 10 * time.Second
	silence     = 60 * time.Second
)

// openTap starts to read a slot.
func openTap(ctx context.Context, conn *pgconn.PgConn, c clock.Clock, slot, publication string, from, flushed pglogrepl.LSN, wait time.Duration, bounded bool) (*tap, error) {
	err := pglogrepl.StartReplication(ctx, conn, slot, from, pglogrepl.StartReplicationOptions{
		Mode: pglogrepl.LogicalReplication, PluginArgs: []string{"proto_version '1'", "publication_names " + literal(quote(publication))},
	})
	if err != nil {
		return nil, err
	}
	t := &tap{conn: conn, clock: c, out: make(chan tapped, tapDepth), quit: make(chan struct{}), wake: make(chan struct{}, 1)}
	t.flushed.Store(uint64(flushed))
	t.heard.Store(c.Now().UnixNano())
	every := statusEvery
	if wait > 0 {
		every = min(every, wait/4)
	}
	if bounded { // a bounded read waits for the answer
		every = min(every, 200*time.Millisecond)
	}
	t.done.Add(2)
	go t.receive()
	go t.tell(max(every, 10*time.Millisecond))
	return t, nil
}

func (t *tap) receive() {
	defer t.done.Done()
	for {
		m, err := t.conn.ReceiveMessage(context.Background()) // close ends it
		t.heard.Store(t.clock.Now().UnixNano())
		var out tapped
		switch m := m.(type) {
		case nil:
			out.err = err
		case *pgproto3.ErrorResponse:
			out.err = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CopyData:
			out, err = t.read(m.Data)
			if out.err = err; err == nil && out.data == nil && out.behind == 0 {
				continue
			}
		case *pgproto3.CopyDone:
			out.err = fmt.Errorf("the server has ended the replication")
		default:
			continue
		}
		if err != nil {
			out.err = err
		}
		select {
		case t.out <- out:
		default:
			t.full.Store(true)
			select {
			case t.out <- out:
				t.full.Store(false)
			case <-t.quit:
				return
			}
		}
		if out.err != nil {
			return
		}
	}
}

// read takes one message of the replication protocol apart. Its bytes are the connection's until the next one.
func (t *tap) read(data []byte) (out tapped, err error) {
	if len(data) == 0 {
		return out, fmt.Errorf("the server sent an empty message")
	}
	switch data[0] {
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		k, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		if err != nil {
			return out, err
		}
		if k.ReplyRequested {
			t.now()
		}
		return tapped{behind: k.ServerWALEnd}, nil
	case pglogrepl.XLogDataByteID:
		x, err := pglogrepl.ParseXLogData(data[1:])
		if err != nil {
			return out, err
		}
		return tapped{data: append([]byte{}, x.WALData...)}, nil
	}
	return out, nil
}

// flush lets the server forget what is before a place.
func (t *tap) flush(upTo pglogrepl.LSN) {
	for {
		at := t.flushed.Load()
		if at >= uint64(upTo) || t.flushed.CompareAndSwap(at, uint64(upTo)) {
			return
		}
	}
}

// now tells the server at once.
func (t *tap) now() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *tap) tell(every time.Duration) {
	defer t.done.Done()
	for {
		// AIDEV-NOTE: all three places are what is durable. What was merely received must not be named as flushed: the server would forget it.
		at := pglogrepl.LSN(t.flushed.Load())
		err := pglogrepl.SendStandbyStatusUpdate(context.Background(), t.conn, pglogrepl.StandbyStatusUpdate{
			WALWritePosition: at, WALFlushPosition: at, WALApplyPosition: at, ClientTime: t.clock.Now(), ReplyRequested: true,
		})
		quiet := t.clock.Now().Sub(time.Unix(0, t.heard.Load()))
		if err != nil || quiet > max(silence, 4*every) && !t.full.Load() && len(t.out) == 0 {
			_ = t.conn.Conn().Close() // which receive notices
			return
		}
		select {
		case <-t.clock.After(every):
		case <-t.wake:
		case <-t.quit:
			return
		}
	}
}

// close ends the connection; what was not taken is forgotten.
func (t *tap) close() {
	close(t.quit)
	_ = t.conn.Conn().Close()
	t.done.Wait()
	hangUp(t.conn)
}
