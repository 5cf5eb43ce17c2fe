#!/bin/sh
# sh consume.sh HOST:PORT plain|tls: read the records that fill.sh has sent, as a new consumer group.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/kafka.sh"
set --  --bootstrap-server "$1" $([ "$2" = tls ] && echo --consumer.config "$here/state/client.properties")
kafka org.apache.kafka.tools.ConsumerPerformance --topic load --timeout 100000 --messages "${RECORDS:-200000}" "$@"
