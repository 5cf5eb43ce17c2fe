#!/usr/bin/env bash
# Gets the servers that the tests need into ciphercost's own cache. What can't be had here is said, and its tests say so too
# (skipped with the reason; failed with CIPHERCOST_REQUIRE=all).
set -u
ciphercost=$1
if ! command -v mmdebstrap >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -y -q mmdebstrap >/dev/null 2>&1 \
        || { apt-get update -q >/dev/null 2>&1 && apt-get install -y -q mmdebstrap >/dev/null 2>&1; } \
        || echo "mmdebstrap can't be installed: no Debian servers"
fi
if ! command -v mvn >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -y -q maven >/dev/null 2>&1 \
        || { apt-get update -q >/dev/null 2>&1 && apt-get install -y -q maven >/dev/null 2>&1; } \
        || echo "maven can't be installed: no servers from there"
fi
command -v mvn >/dev/null && "$ciphercost" install postgresql@17 --source maven
if [ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null; then
    for server in postgresql@18 postgresql@15 mysql@9.7 mariadb@11.8 mariadb@10.11 firebird@4.0; do
        "$ciphercost" install "$server" --source debian
    done
fi
if [ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null; then
    "$(dirname "$ciphercost")/python" -c '
from ciphercost import sources
from ciphercost.volumes import fuse
print(sources.tool("gocryptfs"), fuse.passing())' || echo "gocryptfs or its plain twin can't be had"
fi
exit 0
