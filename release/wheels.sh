#!/usr/bin/env bash
# Builds the wheels of both distributions into dist/, without a container:
#   ciphercost-agent   for x86_64 and aarch64. Zig is the C compiler and the linker, so that the binary runs with glibc 2.17 or newer.
#   ciphercost         for any machine. It holds the Java agent's jar and requires the agent of the same version.
#   wheels.sh [PYTHON]           RELEASE_TARGETS: other Rust targets, e.g. x86_64-unknown-linux-gnu only
set -eu -o pipefail
python=${1:-python3}
cd "$(dirname "$0")/.."
targets=${RELEASE_TARGETS:-x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu}
glibc=2_17 # the oldest that Rust's standard library runs with
tools=.make/release
jar=agents/java/target/ciphercost-agent-jdbc.jar

missing=0
# need PROGRAM PACKAGE
need() {
    command -v "$1" >/dev/null || { echo "make release: $1 was not found; $2" >&2; missing=2; }
}
need cargo "install Rust by rustup"
need rustup "install Rust by rustup: a distribution's Rust has no standard library for aarch64"
need mvn "on Debian: apt-get install maven"
need javac "on Debian: apt-get install default-jdk-headless"
need make "on Debian: apt-get install make; it builds OpenSSL"
need perl "on Debian: apt-get install perl; it configures OpenSSL"
[ $missing = 0 ] || exit $missing

version=$("$python" release/version.py)
[ -x $tools/bin/pip ] || "$python" -m venv $tools
$tools/bin/pip install --quiet --require-hashes -r release/locks/release.txt
rm -rf dist
mkdir dist

echo "building the Java agent $version"
mvn -B -q -f agents/java/pom.xml clean package

echo "building ciphercost $version"
CIPHERCOST_RELEASE_JAR=$PWD/$jar $tools/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

for target in $targets; do
    echo "building ciphercost-agent $version for $target (OpenSSL, SQLCipher and the agent: some minutes the first time)"
    rustup --quiet target add "$target" 2>/dev/null || rustup target add "$target"
    # maturin finds zig as the Python module ziglang. It refuses the wheel if the binary needs more than this glibc.
    (cd agents/rust && PATH="$OLDPWD/$tools/bin:$PATH" maturin build --quiet --release --zig --target "$target" \
        --compatibility "manylinux_$glibc" --out ../../dist)
done

echo
for wheel in dist/ciphercost_agent-*.whl; do # a second opinion: the oldest system that each binary runs on
    $tools/bin/auditwheel show "$wheel" | tr '\n' ' ' | grep -o '[^ ]* is consistent with the following platform tag: "[^"]*"'
done
ls -l dist | awk 'NR > 1 { printf "%6.1f MB  dist/%s\n", $5 / 1e6, $9 }'
