#!/usr/bin/env bash
# A real Apache Kafka broker for tests and benchmarks: one node, KRaft, on a loopback port. Its jars come from Maven
# Central, once.
#
#   tools/services/kafka.sh start    prints host:port when the broker answers
#   tools/services/kafka.sh stop     ends it
#   tools/services/kafka.sh kill     ends it without a chance to tidy up
#   tools/services/kafka.sh reset    ends it and forgets its data
#
# KAFKA_PORT (19092) and KAFKA_CONTROLLER_PORT (the next one) choose the ports, KAFKA_DATA the folder of the data.
# RIVERBED_SERVICES (~/.cache/riverbed/services) is the folder of the jars, which all brokers share.
set -euo pipefail

version=4.2.0
port=${KAFKA_PORT:-19092}
controller=${KAFKA_CONTROLLER_PORT:-$((port + 1))}
home=${RIVERBED_SERVICES:-${XDG_CACHE_HOME:-$HOME/.cache}/riverbed/services}/kafka
libs=$home/libs-$version
data=${KAFKA_DATA:-$home/data-$port}
jvm=(-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms64m -Xmx512m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn)

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
# After a restart of the machine the number may be another program's, so the command line is looked at.
alive() { [ -f "$data/pid" ] && grep -qsF "$data/server.properties" "/proc/$(cat "$data/pid")/cmdline"; }

fetch_jars() {
  mkdir -p "$libs" "$home/pom"
  exec 9>"$home/lock" # two that start at once fetch once
  flock 9
  [ -e "$libs/.complete" ] || download
  exec 9>&-
}

download() {
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
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
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
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.cleaner.dedupe.buffer.size=4194304
# A start behind a kill waits until the session of the killed broker has ended, which is nine seconds otherwise.
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
CONF
  [ -e "$data/logs/meta.properties" ] || java "${jvm[@]}" -cp "$libs/*" kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qg -c "$data/server.properties" >/dev/null
}

start() {
  if ! alive; then
    ! answers || { echo "port $port is taken by another program; choose one with KAFKA_PORT" >&2; exit 1; }
    fetch_jars
    configure
    nohup java "${jvm[@]}" -cp "$libs/*" kafka.Kafka "$data/server.properties" >"$data/broker.log" 2>&1 </dev/null &
    echo $! >"$data/pid"
  fi
  until answers; do
    kill -0 "$(cat "$data/pid")" 2>/dev/null || { echo "the broker did not start:" >&2; tail -20 "$data/broker.log" >&2; exit 1; }
    sleep 0.1
  done
  echo "127.0.0.1:$port"
}

finish() {
  alive || return 0
  kill "-$1" "$(cat "$data/pid")"
  # A killed process loses its command line before its sockets: only when the port is silent is it gone.
  while alive || answers; do sleep 0.1; done
}

case ${1:-} in
  start) start ;;
  stop) finish TERM ;;
  kill) finish KILL ;;
  reset) finish KILL; rm -rf "$data" ;;
  *) sed -n '2,12p' "$0" >&2; exit 2 ;;
esac
