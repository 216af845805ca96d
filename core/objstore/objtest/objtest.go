// Package objtest gives tests a real S3 service of their own.
//
// Invariant: the service listens on loopback, serves a temporary folder, and ends with the test that started it, also when that is killed.
package objtest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Bucket is one that exists.
const Bucket = "bucket"

// Service is a running S3 service.
type Service struct {
	Endpoint string
	Folder   string // each folder in it is a bucket, each file an object
	port     int
	stdin    io.Closer
	ended    chan struct{}
	cmd      *exec.Cmd
	log      *os.File
	t        testing.TB
}

// S3 starts a service and points the AWS variables of the test at it.
func S3(t testing.TB) *Service {
	t.Helper()
	script := script(t)
	if out, err := exec.Command(script, "binary").CombinedOutput(); err != nil {
		t.Skipf("the S3 service of the tests cannot be built: %v\n%s", err, out)
	}
	s := &Service{t: t, Folder: filepath.Join(t.TempDir(), "data")}
	if err := os.MkdirAll(filepath.Join(s.Folder, Bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Kill)
	for name, value := range s.Environment() {
		t.Setenv(name, value)
	}
	return s
}

// Environment is what a client needs.
func (s *Service) Environment() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": s.Endpoint, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testsecret",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	}
}

// script finds the service's script above the folder of the test: where this file was is not known to programs that are built by -trimpath.
func script(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		path := filepath.Join(folder, "tools", "services", "s3.sh")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatal("no folder above that of the test has tools/services/s3.sh")
	return ""
}

// Start starts the service, again on its port when it was killed.
func (s *Service) Start() {
	s.t.Helper()
	script := script(s.t)
	for {
		port := s.port
		if port == 0 {
			port = freePort(s.t)
		}
		cmd := exec.Command(script, "run", fmt.Sprint(port), filepath.Dir(s.Folder))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		log, err := os.OpenFile(filepath.Join(filepath.Dir(s.Folder), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			s.t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = log, log
		stdin, err := cmd.StdinPipe()
		if err != nil {
			s.t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		s.cmd, s.stdin, s.ended, s.log = cmd, stdin, ended, log
		if answers(port, ended) {
			s.port, s.Endpoint = port, fmt.Sprintf("http://127.0.0.1:%d", port)
			return
		}
		s.Kill()
		if s.port != 0 {
			text, _ := os.ReadFile(log.Name())
			s.t.Fatalf("the S3 service did not start:\n%s", text)
		}
	}
}

// Kill ends the service without a chance to tidy up.
func (s *Service) Kill() {
	if s.cmd == nil {
		return
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.ended
	_ = s.stdin.Close()
	_ = s.log.Close()
	s.cmd = nil
}

func answers(port int, ended chan struct{}) bool {
	for {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err == nil {
			_ = c.Close()
			return true
		}
		select {
		case <-ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freePort is below those that the system gives to clients: one of them could otherwise take it while the service is down.
func freePort(t testing.TB) int {
	for port := 22000 + os.Getpid()*7%8000; port < 32000; port++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}
