#!/usr/bin/env bash
# A real Apache Kafka broker for tests and benchmarks: one node, KRaft, on a loopback port. Its jars come from Maven
# Central, once.
#
#   tools/services/kafka.sh start    prints host:port when the broker answers
#   tools/services/kafka.sh stop     ends it
#   tools/services/kafka.sh kill     ends it without a chance to tidy up
#   tools/services/kafka.sh reset    ends it and forgets its data
#
# KAFKA_PORT (19092) chooses the port, RIVERBED_SERVICES the folder of jars and data (~/.cache/riverbed/services).
set -euo pipefail

version=4.2.0
port=${KAFKA_PORT:-19092}
home=${RIVERBED_SERVICES:-${XDG_CACHE_HOME:-$HOME/.cache}/riverbed/services}/kafka
libs=$home/libs-$version
data=$home/data-$port
jvm=(-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms64m -Xmx512m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn)

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
alive() { [ -f "$data/pid" ] && kill -0 "$(cat "$data/pid")" 2>/dev/null; }

fetch_jars() {
  [ -e "$libs/.complete" ] && return
  mkdir -p "$libs" "$home/pom"
  cat >"$home/pom/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>riverbed</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
  (cd "$home/pom" && mvn -q -B dependency:copy-dependencies -DoutputDirectory="$libs" -DincludeScope=runtime) >&2
  touch "$libs/.complete"
}

configure() {
  mkdir -p "$data"
  cat >"$data/server.properties" <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$data/logs
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.cleaner.dedupe.buffer.size=4194304
CONF
  [ -e "$data/logs/meta.properties" ] || java "${jvm[@]}" -cp "$libs/*" kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qg -c "$data/server.properties" >/dev/null
}

start() {
  if ! answers; then
    fetch_jars
    configure
    nohup java "${jvm[@]}" -cp "$libs/*" kafka.Kafka "$data/server.properties" >"$data/broker.log" 2>&1 </dev/null &
    echo $! >"$data/pid"
    until answers; do
      alive || { echo "the broker did not start:" >&2; tail -20 "$data/broker.log" >&2; exit 1; }
      sleep 0.1
    done
  fi
  echo "127.0.0.1:$port"
}

finish() {
  alive || return 0
  kill "-$1" "$(cat "$data/pid")"
  while alive; do sleep 0.1; done
}

case ${1:-} in
  start) start ;;
  stop) finish TERM ;;
  kill) finish KILL ;;
  reset) finish KILL; rm -rf "$data" ;;
  *) sed -n '2,11p' "$0" >&2; exit 2 ;;
esac
