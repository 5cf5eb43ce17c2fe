# What the recipes' serve.sh share: a state directory, a certificate, starting and stopping a process. POSIX sh.
#
# `sh serve.sh start|stop|restart`. The server's files are in a new temporary directory, to which the link `state`
# beside serve.sh leads. A server is stopped by the number of its process group in that directory, never by its name.

set -eu
umask 077
here=$(cd "$(dirname "$0")" && pwd)
state=$here/state

fail() {
  echo "$(basename "$here"): $*" >&2
  exit 1
}

# need PROGRAM HINT: fail if the program is not in PATH.
need() {
  command -v "$1" > /dev/null || fail "$1 was not found; $2"
}

# new_state: an empty state directory.
new_state() {
  [ ! -e "$state" ] || fail "it runs already; sh $here/serve.sh stop ends it"
  rm -f "$state"
  ln -s "$(mktemp -d "${TMPDIR:-/tmp}/ciphercost-$(basename "$here").XXXXXX")" "$state"
}

# certificate: an authority (ca.pem) and a certificate for localhost and 127.0.0.1 (server.pem, server.key), for two days.
certificate() {
  need openssl "Debian: apt-get install openssl"
  (
    cd "$state"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj '/CN=recipe authority' -keyout ca.key -out ca.pem \
      -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign'
    openssl req -newkey rsa:2048 -nodes -subj '/CN=localhost' -keyout server.key -out server.csr
    printf '%s\n' 'subjectAltName=DNS:localhost,IP:127.0.0.1' 'extendedKeyUsage=serverAuth' > server.ext
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.pem
    rm ca.key
  ) > "$state/openssl.log" 2>&1 || stopped "openssl made no certificate" openssl
}

# spawn NAME COMMAND…: start a process, in a group of its own. Its output is in NAME.log, its number in NAME.pid.
spawn() {
  name=$1
  shift
  setsid "$@" > "$state/$name.log" 2>&1 < /dev/null &
  echo $! > "$state/$name.pid"
}

# free PORT…: fail if somebody listens there.
free() {
  for port; do
    if listens "$port"; then
      fail "port $port is in use; end what listens there, or change the port in $here/serve.sh and in the spec files"
    fi
  done
}

listens() {
  awk -v port="$(printf ':%04X' "$1")" '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 } END { exit !found }' \
    /proc/net/tcp /proc/net/tcp6 2> /dev/null
}

# await NAME PORT…: wait until the process listens on these ports.
await() {
  name=$1
  shift
  for port; do
    tries=0
    until listens "$port"; do
      kill -0 "$(cat "$state/$name.pid")" 2> /dev/null || stopped "$name did not start" "$name"
      tries=$((tries + 1))
      [ $tries -lt 600 ] || stopped "$name does not listen on port $port after a minute" "$name"
      sleep 0.1
    done
  done
}

# stopped MESSAGE NAME: end what was started, and fail with the error in NAME.log, or its last line.
stopped() {
  last=$(grep -iE 'error|exception|fail' "$state/$2.log" | head -n 1)
  last=${last:-$(grep -v '^[[:space:]]*$' "$state/$2.log" | tail -n 1)}
  stop
  fail "$1: $last"
}

# stop: end all processes that were started, the last one first, and remove their directory.
stop() {
  [ -e "$state" ] || { rm -f "$state"; return 0; }
  for file in $(ls -t "$state"/*.pid 2> /dev/null); do
    pid=$(cat "$file")
    kill -- "-$pid" 2> /dev/null || continue
    tries=0
    while kill -s 0 -- "-$pid" 2> /dev/null; do
      tries=$((tries + 1))
      [ $tries -ne 300 ] || kill -s KILL -- "-$pid" 2> /dev/null || true
      sleep 0.1
    done
  done
  rm -rf "$(readlink "$state")" "$state"
}

# serve WORD: what serve.sh was asked to do. The recipe defines `start`.
serve() {
  case ${1:-} in
    start) start ;;
    stop) stop ;;
    restart)
      stop
      start
      ;;
    *) fail "sh serve.sh start, stop or restart" ;;
  esac
}
