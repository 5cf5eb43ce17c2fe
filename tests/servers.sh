#!/usr/bin/env bash
# Gets the servers and tools that the tests need: servers into ciphercost's own cache, tools from Debian. What can't be had here is
# said, and its tests say so too (skipped with the reason; failed with CIPHERCOST_REQUIRE=all).
set -u
ciphercost=$1

# need PROGRAM PACKAGE WORDS: the program is here or is installed; else the words are said.
need() {
    command -v "$1" >/dev/null && return 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get install -y -q "$2" >/dev/null 2>&1 && return 0
        apt-get update -q >/dev/null 2>&1 && apt-get install -y -q "$2" >/dev/null 2>&1 && return 0
    fi
    echo "$2 can't be installed: $3"
    return 1
}

need mkfs.ext4 e2fsprogs "no fscrypt"
need fio fio "storage itself isn't measured"
need chromium chromium "no look at the report's page"
need mvn maven "no servers from there" && "$ciphercost" install postgresql@17 --source maven
need javac default-jdk-headless "no JDBC" && command -v mvn >/dev/null && "$(dirname "$ciphercost")/python" -c '
from ciphercost import drivers, java
print(java.jar(), *(driver.jars()[0].name for driver in drivers.DRIVERS))' || echo "the JDBC agent or its drivers can't be had"
need mmdebstrap mmdebstrap "no Debian servers"
if [ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null; then
    for server in postgresql@18 postgresql@15 mysql@9.7 mariadb@11.8 mariadb@10.11 firebird@4.0 nginx@1.26 apache@2.4; do
        "$ciphercost" install "$server" --source debian
    done
    "$(dirname "$ciphercost")/python" -c '
from ciphercost import sources
from ciphercost.volumes import fuse
print(sources.tool("gocryptfs"), fuse.passing())' || echo "gocryptfs or its plain twin can't be had"
    "$(dirname "$ciphercost")/python" "$(dirname "$0")/other_tools.py" || echo "other load generators can't be had: their output isn't imported in tests"
fi
exit 0
