#!/bin/sh
# One Kafka broker (KRaft, which is its own controller): PLAINTEXT on port 19092, SSL on 19093. The controller's port is 19091.
. "$(dirname "$0")/../serving.sh"
CONTROLLER=19091 PLAIN=19092 TLS=19093
. "$here/kafka.sh"

start() {
  need java "Debian: apt-get install default-jre-headless (Java 17 or newer)"
  [ -n "$(ls "$KAFKA_LIB" 2> /dev/null)" ] || fail "there is no Kafka in $KAFKA_LIB; mvn -q -f $here/pom.xml package, or set KAFKA_LIB"
  free $CONTROLLER $PLAIN $TLS
  new_state
  certificate
  cat "$state/server.key" "$state/server.pem" > "$state/keystore.pem"
  printf 'security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=%s\n' "$state/ca.pem" > "$state/client.properties"
  cat > "$state/server.properties" << END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$CONTROLLER
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
listeners=CONTROLLER://127.0.0.1:$CONTROLLER,PLAINTEXT://127.0.0.1:$PLAIN,SSL://127.0.0.1:$TLS
ssl.keystore.type=PEM
ssl.keystore.location=$state/keystore.pem
log.dirs=$state/data
log.segment.bytes=134217728
log.retention.bytes=268435456
log.retention.check.interval.ms=5000
num.partitions=4
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
END
  (kafka kafka.tools.StorageTool format --cluster-id AAAAAAAAAAAAAAAAAAAAAA --config "$state/server.properties") \
    > "$state/format.log" 2>&1 || stopped "Kafka did not format its directory" format
  JAVA_HEAP=768m spawn kafka sh -c 'here=$1; . "$here/kafka.sh"; kafka kafka.Kafka "$2"' sh "$here" "$state/server.properties"
  await kafka $CONTROLLER $PLAIN $TLS
}

serve "$@"
