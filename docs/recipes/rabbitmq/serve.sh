#!/bin/sh
# One RabbitMQ node: AMQP on port 15673, AMQP over TLS on 15674. Ports 15675 and 15676 are Erlang's.
. "$(dirname "$0")/../serving.sh"
# Not the program in /usr/sbin: Debian's changes the user, and the node then is not of the recipe's.
RABBITMQ_SERVER=${RABBITMQ_SERVER:-/usr/lib/rabbitmq/bin/rabbitmq-server}
PLAIN=15673 TLS=15674 DIST=15675 EPMD=15676

start() {
  [ -x "$RABBITMQ_SERVER" ] || fail "$RABBITMQ_SERVER was not found; Debian: apt-get install rabbitmq-server, or set RABBITMQ_SERVER"
  need erl "Debian: apt-get install erlang-base"
  need epmd "Debian: apt-get install erlang-base"
  need keytool "Debian: apt-get install default-jre-headless"
  free $PLAIN $TLS $DIST $EPMD
  new_state
  certificate
  # Java reads no PEM file of authorities.
  keytool -importcert -noprompt -storetype PKCS12 -storepass recipe -alias authority -file "$state/ca.pem" \
    -keystore "$state/ca.p12" > "$state/keytool.log" 2>&1 || stopped "keytool made no trust store" keytool
  cat > "$state/rabbitmq.conf" << END
listeners.tcp.1 = 127.0.0.1:$PLAIN
listeners.ssl.1 = 127.0.0.1:$TLS
ssl_options.certfile = $state/server.pem
ssl_options.keyfile = $state/server.key
ssl_options.verify = verify_none
log.console = true
log.console.level = warning
log.file = false
END
  export HOME="$state" ERL_EPMD_PORT=$EPMD ERL_EPMD_ADDRESS=127.0.0.1
  spawn epmd epmd
  await epmd $EPMD
  export RABBITMQ_NODENAME=recipe@localhost RABBITMQ_DIST_PORT=$DIST RABBITMQ_CONFIG_FILE="$state/rabbitmq.conf" \
    RABBITMQ_MNESIA_BASE="$state/data" RABBITMQ_LOG_BASE="$state/log" RABBITMQ_PID_FILE="$state/rabbit.number" \
    RABBITMQ_ENABLED_PLUGINS_FILE="$state/plugins" RABBITMQ_LOGS=- RABBITMQ_SERVER_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}"
  spawn rabbitmq-server "$RABBITMQ_SERVER"
  await rabbitmq-server $PLAIN $TLS
}

serve "$@"
