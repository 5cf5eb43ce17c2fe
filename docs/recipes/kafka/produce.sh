#!/bin/sh
# sh produce.sh HOST:PORT plain|tls: send 200,000 records of 1,000 bytes as fast as the broker takes them. Where the machine is so
# busy that it takes minutes, the producer waits for it; by default it gives records up, and consume.sh would miss them.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/kafka.sh"
set -- --producer-props "bootstrap.servers=$1" max.block.ms=600000 request.timeout.ms=300000 delivery.timeout.ms=600000 \
  $([ "$2" = tls ] && echo --producer.config "$here/state/client.properties")
kafka org.apache.kafka.tools.ProducerPerformance --topic load --num-records "${RECORDS:-200000}" --record-size 1000 --throughput -1 "$@"
