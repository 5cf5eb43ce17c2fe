#!/usr/bin/env bash
# Check that this machine has what the build needs. If not, print everything that is missing and what to install; exit status 2.
#   needs.sh [PYTHON]            CIPHERCOST_OS_RELEASE: file to read instead of /etc/os-release, for tests
set -u
python=${1:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
least_rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/agents/rust/Cargo.toml")
least_python=$(sed -n 's/^requires-python = ">=\(.*\)"/\1/p' "$root/pyproject.toml")

gaps=()

# at_least VERSION LEAST
at_least() { [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

for program in rustc cargo; do
    if ! command -v "$program" >/dev/null; then
        gaps+=("$program was not found; the build needs Rust $least_rust or newer")
    else
        said=$("$program" --version 2>&1)
        version=$(sed -n "s/^$program \([0-9][0-9.]*\).*/\1/p" <<<"$said" | head -n 1)
        if [ -z "$version" ]; then
            gaps+=("\`$program --version\` prints no version: $(head -n 1 <<<"$said")")
        elif ! at_least "$version" "$least_rust"; then
            gaps+=("$program is $version ($(command -v "$program")); the build needs Rust $least_rust or newer")
        fi
    fi
done
command -v cc >/dev/null || gaps+=("cc, a C compiler, was not found; the build compiles OpenSSL and SQLCipher with it")
command -v make >/dev/null || gaps+=("make was not found; the build makes OpenSSL with it")
# OpenSSL's Configure loads these modules; a minimal perl lacks some of them.
perl -MFindBin -MIPC::Cmd -MFile::Compare -MPod::Usage -e 1 2>/dev/null ||
    gaps+=("perl with its standard modules was not found; the build configures OpenSSL with it")
if ! version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); then
    gaps+=("$python was not found; the build needs Python $least_python or newer")
elif ! at_least "$version" "$least_python"; then
    gaps+=("$python is $version; the build needs Python $least_python or newer (choose another one with make PYTHON=…)")
elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    gaps+=("$python can't create virtual environments (no module ensurepip)")
fi
[ ${#gaps[@]} = 0 ] && exit 0

# The packages that README.md lists for this system: `    Debian 13       apt-get install …`.
system=$(. "${CIPHERCOST_OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${NAME%% *} ${VERSION_ID:-}")
install=
[ -z "$system" ] || install=$(sed -n "s/^    $system  *//p" "$root/README.md")
{
    echo "can't build ciphercost, because something is missing:"
    printf '  - %s\n' "${gaps[@]}"
    if [ -n "$install" ]; then
        echo "On $system install these packages, then try again:"
        echo "  $install"
    else
        echo "Install Rust $least_rust or newer (from rustup.rs), a C compiler, make, perl and"
        echo "Python $least_python or newer with venv, then try again."
    fi
} >&2
exit 2
