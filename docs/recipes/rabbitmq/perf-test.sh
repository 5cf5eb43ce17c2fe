#!/bin/sh
# sh perf-test.sh amqp://HOST:PORT|amqps://HOST:PORT SECONDS: one producer with confirms, one consumer, messages of 1,000 bytes.
here=$(cd "$(dirname "$0")" && pwd)
# Without these PerfTest checks no certificate; with one of them it uses TLS, whatever the address says.
tls="--use-default-ssl-context"
trust="-Djavax.net.ssl.trustStore=$here/state/ca.p12 -Djavax.net.ssl.trustStorePassword=recipe"
case $1 in amqp:*) tls= trust= ;; esac
exec java -Xmx256m $trust -cp "${PERF_TEST_LIB:-$here/lib}/*" com.rabbitmq.perf.PerfTest $tls --uri "$1" --time "$2" \
  --producers 1 --consumers 1 --size 1000 --confirm 500 --queue recipe-load --auto-delete true
