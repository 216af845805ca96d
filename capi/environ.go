package main

// #ifdef __APPLE__
// #include <crt_externs.h>
// #define environ (*_NSGetEnviron())
// #else
// extern char **environ;
// #endif
// static char *variable(int i) { return environ ? environ[i] : 0; }
import "C"

import (
	"os"
	"strings"
)

// adoptEnvironment takes over what the host has set since the library was loaded: Go's environment is a copy of that moment, and a notebook sets its keys
// later. Only what settings and stores read is looked at, and only what differs is set.
func adoptEnvironment() {
	theirs := map[string]bool{}
	for i := 0; ; i++ {
		v := C.variable(C.int(i))
		if v == nil {
			break
		}
		name, value, ok := strings.Cut(C.GoString(v), "=")
		if !ok || !adopted(name) {
			continue
		}
		theirs[name] = true
		if have, set := os.LookupEnv(name); !set || have != value {
			_ = os.Setenv(name, value)
		}
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); adopted(name) && !theirs[name] {
			_ = os.Unsetenv(name)
		}
	}
}

func adopted(name string) bool {
	return strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "RIVERBED_") || strings.HasPrefix(name, "KAFKA_") || strings.HasPrefix(name, "PG")
}
