#!/usr/bin/env bash
# A catalog service for tests: the REST catalog that Iceberg's own tests use, in Java, over a catalog in SQLite. Its jars come from Maven Central, once.
#
#   tools/services/iceberg.sh run WAREHOUSE   prints the address when it answers, and serves until its standard input ends
#
# It listens on a loopback port that is free. RIVERBED_SERVICES (~/.cache/riverbed/services) is the folder of the jars.
set -euo pipefail

version=1.9.2
home=${RIVERBED_SERVICES:-${XDG_CACHE_HOME:-$HOME/.cache}/riverbed/services}/iceberg
libs=$home/libs-$version

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
  <modelVersion>4.0.0</modelVersion><groupId>riverbed</groupId><artifactId>iceberg</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.iceberg</groupId><artifactId>iceberg-core</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.apache.iceberg</groupId><artifactId>iceberg-core</artifactId><version>$version</version><classifier>tests</classifier></dependency>
    <dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-api</artifactId><version>3.4.1</version></dependency>
    <dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-runtime</artifactId><version>3.4.1</version></dependency>
    <dependency><groupId>org.xerial</groupId><artifactId>sqlite-jdbc</artifactId><version>3.50.3.0</version></dependency>
    <dependency><groupId>org.eclipse.jetty</groupId><artifactId>jetty-servlet</artifactId><version>11.0.25</version></dependency>
    <dependency><groupId>org.eclipse.jetty</groupId><artifactId>jetty-xml</artifactId><version>11.0.25</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>2.0.17</version></dependency>
  </dependencies>
</project>
POM
  (cd "$home/pom" && mvn -q -B dependency:copy-dependencies -DoutputDirectory="$libs" -DincludeScope=runtime) >&2
  touch "$libs/.complete"
}

# The service's own main class listens on every address; put together by Jetty's XML it does on loopback.
configure() { # port, folder
  cat >"$2/jetty.xml" <<XML
<?xml version="1.0"?><!DOCTYPE Configure PUBLIC "-//Jetty//Configure//EN" "https://www.eclipse.org/jetty/configure_10_0.dtd">
<Configure id="server" class="org.eclipse.jetty.server.Server">
  <New id="properties" class="java.util.HashMap">
    <Call name="put"><Arg>uri</Arg><Arg>jdbc:sqlite:$2/catalog.db</Arg></Call>
    <Call name="put"><Arg>warehouse</Arg><Arg>$warehouse</Arg></Call>
    <Call name="put"><Arg>catalog-impl</Arg><Arg>org.apache.iceberg.jdbc.JdbcCatalog</Arg></Call>
    <Call name="put"><Arg>clients</Arg><Arg>1</Arg></Call>
  </New>
  <Call id="catalog" class="org.apache.iceberg.CatalogUtil" name="buildIcebergCatalog">
    <Arg>rest</Arg><Arg><Ref refid="properties"/></Arg><Arg><New class="org.apache.hadoop.conf.Configuration"/></Arg>
  </Call>
  <Call name="addConnector"><Arg>
    <New class="org.eclipse.jetty.server.ServerConnector"><Arg><Ref refid="server"/></Arg><Set name="host">127.0.0.1</Set><Set name="port">$1</Set></New>
  </Arg></Call>
  <Set name="handler">
    <New class="org.eclipse.jetty.servlet.ServletContextHandler">
      <Call name="addServlet"><Arg>
        <New class="org.eclipse.jetty.servlet.ServletHolder"><Set name="servlet">
          <New class="org.apache.iceberg.rest.RESTCatalogServlet"><Arg><New class="org.apache.iceberg.rest.RESTCatalogAdapter"><Arg><Ref refid="catalog"/></Arg></New></Arg></New>
        </Set></New>
      </Arg><Arg>/*</Arg></Call>
    </New>
  </Set>
</Configure>
XML
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

run() {
  fetch_jars
  folder=$(mktemp -d)
  server=
  trap 'kill -KILL $server 2>/dev/null; rm -rf "$folder"' EXIT
  for _ in 1 2 3 4 5; do
    port=$((22000 + RANDOM % 8000)) # below those that the system gives to clients
    answers "$port" && continue
    configure "$port" "$folder"
    java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx256m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$libs/*" \
      org.eclipse.jetty.xml.XmlConfiguration "$folder/jetty.xml" </dev/null >&2 &
    server=$!
    while kill -0 $server 2>/dev/null; do
      if answers "$port"; then
        echo "http://127.0.0.1:$port"
        while read -r; do :; done
        return
      fi
      sleep 0.1
    done
  done
  echo "the catalog service did not start in Java" >&2
  exit 1
}

case ${1:-} in
  run) warehouse=$2; run ;;
  *) sed -n '2,6p' "$0" >&2; exit 2 ;;
esac
