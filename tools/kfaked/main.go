// Command kfaked is an embedded Kafka broker for the demo: it speaks the Kafka protocol on a loopback port, keeps
// everything in memory, prints its address, and ends when its standard input closes.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(3))
	if err != nil {
		fmt.Fprintln(os.Stderr, "kfaked:", err)
		os.Exit(1)
	}
	defer c.Close()
	fmt.Println(c.ListenAddrs()[0])
	_, _ = io.Copy(io.Discard, os.Stdin) // the parent's end closes the pipe, so no broker outlives it
}
