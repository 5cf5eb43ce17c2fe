#!/bin/sh
# Restart the broker and fill the topic that consume.sh reads.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../serving.sh"
sh "$here/serve.sh" restart
sent=$(sh "$here/produce.sh" 127.0.0.1:19092 plain)
echo "$sent"
case $(echo "$sent" | tail -n 1) in
  "${RECORDS:-200000} records sent, "*) ;;
  *) fail "the topic has fewer than ${RECORDS:-200000} records; see the errors above" ;;
esac
