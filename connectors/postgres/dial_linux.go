package postgres

import (
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT, which the package syscall does not name.
const tcpUserTimeout = 18

// limitSilence ends a connection when what was sent is not acknowledged for so long.
func limitSilence(fd uintptr, most time.Duration) error {
	return syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(most.Milliseconds()))
}
