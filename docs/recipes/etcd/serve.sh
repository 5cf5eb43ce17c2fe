#!/bin/sh
# One etcd: clients on port 12379 without TLS, on 12380 with TLS. Peers' port is 12381.
. "$(dirname "$0")/../serving.sh"
PLAIN=12379 TLS=12380 PEER=12381

start() {
  need etcd "Debian: apt-get install etcd-server"
  free $PLAIN $TLS $PEER
  new_state
  certificate
  # No fsync: each write would wait for the disk, and TLS would hide behind it. Remove the option to see your disk's share.
  spawn etcd etcd --name recipe --data-dir "$state/data" --logger zap --log-level warn --unsafe-no-fsync \
    --listen-client-urls "http://127.0.0.1:$PLAIN,https://127.0.0.1:$TLS" \
    --advertise-client-urls "http://127.0.0.1:$PLAIN" \
    --listen-peer-urls "http://127.0.0.1:$PEER" --initial-advertise-peer-urls "http://127.0.0.1:$PEER" \
    --initial-cluster "recipe=http://127.0.0.1:$PEER" --cert-file "$state/server.pem" --key-file "$state/server.key"
  await etcd $PLAIN $TLS
}

serve "$@"
