// Command kfaked is an embedded Kafka broker for the demo and for trying things: it speaks the Kafka protocol on a
// loopback port, keeps everything in memory, prints its address, and ends when its standard input closes.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 0, "the port; 0 takes a free one")
	partitions := flag.Int("partitions", 3, "partitions of a topic")
	flag.Parse()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(*port), kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(*partitions))
	if err != nil {
		fmt.Fprintln(os.Stderr, "kfaked:", err)
		os.Exit(1)
	}
	defer c.Close()
	fmt.Println(c.ListenAddrs()[0])
	_, _ = io.Copy(io.Discard, os.Stdin) // the parent's end closes the pipe, so no broker outlives it
}
