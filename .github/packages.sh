#!/bin/sh
# Installs the packages that README.md lists for this system, which so are tried on every push.
set -eu
. /etc/os-release
line=$(sed -n "s/^    ${NAME%% *} $VERSION_ID  *apt-get install/apt-get install --yes/p" README.md)
[ -n "$line" ] || { echo "README.md lists no packages for ${NAME%% *} $VERSION_ID" >&2; exit 2; }
echo "$line"
sh -euc "$line"
# The checkout belongs to another user than the one in the container.
git config --global --add safe.directory "$PWD"
