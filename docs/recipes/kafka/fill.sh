#!/bin/sh
# Restart the broker and fill the topic that consume.sh reads.
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/serve.sh" restart && sh "$here/produce.sh" 127.0.0.1:19092 plain
