#!/bin/sh
# One Mosquitto broker: MQTT on port 18830, MQTT over TLS on 18831.
. "$(dirname "$0")/../serving.sh"
PLAIN=18830 TLS=18831

start() {
  need mosquitto "Debian: apt-get install mosquitto mosquitto-clients"
  free $PLAIN $TLS
  new_state
  certificate
  cat > "$state/mosquitto.conf" << END
user $(id -un)
allow_anonymous true
set_tcp_nodelay true
listener $PLAIN 127.0.0.1
listener $TLS 127.0.0.1
certfile $state/server.pem
keyfile $state/server.key
END
  spawn mosquitto mosquitto -c "$state/mosquitto.conf"
  await mosquitto $PLAIN $TLS
}

serve "$@"
