package postgres

import (
	"context"
	"net"
	"strings"
	"syscall"
	"time"
)

// A connection is given up when the other end has not answered for about this long: what was sent is not acknowledged, or nothing is
// sent and nobody is there. A server that works on something is there.
const networkSilence = time.Minute

// dial connects to a server. AIDEV-NOTE: without these limits a network that swallows what is sent holds a commit for a quarter of an hour.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: networkSilence / 4, Interval: networkSilence / 4, Count: 3}}
	if strings.HasPrefix(network, "tcp") {
		d.Control = func(_, _ string, c syscall.RawConn) error {
			var err error
			if e := c.Control(func(fd uintptr) { err = limitSilence(fd, networkSilence) }); e != nil {
				return e
			}
			return err
		}
	}
	return d.DialContext(ctx, network, addr)
}
