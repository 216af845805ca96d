package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// holder names a process so that another one on the same machine can tell whether it is still there.
type holder struct {
	Host string `json:"host"`
	// Machine is the start of the machine and the process namespace in it: pids of others say nothing. Empty: not known.
	Machine string `json:"machine,omitempty"`
	PID     int    `json:"pid"`
	Started string `json:"started,omitempty"` // of the process, as the machine counts: pids are used again
}

func (h holder) String() string { return fmt.Sprintf("process %d on %s", h.PID, h.Host) }

// thisProcess is us. What the system does not tell stays empty, and then nobody takes us for dead.
func thisProcess() holder {
	h := holder{PID: os.Getpid()}
	h.Host, _ = os.Hostname()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, err2 := os.Readlink("/proc/self/ns/pid")
	if err == nil && err2 == nil {
		h.Machine = strings.TrimSpace(string(boot)) + " " + space
	}
	h.Started, _ = startOf(h.PID)
	return h
}

// dead reports whether the holder is surely gone, as seen by another process.
func (h holder) dead(by holder) bool {
	if h.Host != by.Host || h.Machine != by.Machine || h.Machine == "" || h.Started == "" {
		return false
	}
	started, err := startOf(h.PID)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true
	}
	return err == nil && started != h.Started
}

// startOf is when a process started: field 22 of its stat, counted behind the name in brackets, which may hold anything.
// A process that has ended and was not waited for has not gone, but does nothing any more.
func startOf(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return "", errors.New("unknown form of /proc/pid/stat")
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", os.ErrNotExist
	}
	return fields[19], nil
}
