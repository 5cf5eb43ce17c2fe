#!/usr/bin/env bash
# Builds the wheels of both distributions into dist/, without a container:
#   ciphercost-agent   for x86_64 and aarch64. Zig is the C compiler and the linker, so that the binary runs with glibc 2.17 or newer.
#   ciphercost         for any machine. It holds the Java agent's jar and requires the agent of the same version.
# Each holds a list of what it is made of (an SBOM, CycloneDX), which is also in dist/ as NAME.cdx.json.
# The same commit, built with the same tools, gives the same bytes in every directory: no path, time or mode of this clone gets in.
# `make reproducible` shows it.
#   wheels.sh [PYTHON]           RELEASE_TARGETS: other Rust targets, e.g. x86_64-unknown-linux-gnu only
set -eu -o pipefail
python=${1:-python3}
cd "$(dirname "$0")/.."
targets=${RELEASE_TARGETS:-x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu}
glibc=2_17 # the oldest that Rust's standard library runs with
tools=.make/release
jar=agents/java/target/ciphercost-agent-jdbc.jar
umask 022
export LC_ALL=C.UTF-8 TZ=UTC
unset CFLAGS CPPFLAGS CXXFLAGS LDFLAGS RUSTFLAGS

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
need git "on Debian: apt-get install git; the wheels state the time of the last commit"
[ $missing = 0 ] || exit $missing
# The time that wheels, SBOMs and OpenSSL state instead of the time of the build.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

version=$("$python" release/version.py)
[ -x $tools/bin/pip ] || "$python" -m venv $tools
$tools/bin/pip install --quiet --require-hashes -r release/locks/release.txt
$tools/bin/pip install --quiet --require-hashes -r release/locks/run.txt # for the SBOM, which lists them
sbom() { PYTHONPATH=release $tools/bin/python -m sbom "$@"; }
rm -rf dist
mkdir dist

echo "building the Java agent $version"
mvn -B -q -Dstyle.color=never -f agents/java/pom.xml clean package

echo "building ciphercost $version"
sbom python --version "$version" --jar $jar -o "dist/ciphercost-$version.cdx.json"
CIPHERCOST_RELEASE_JAR=$PWD/$jar CIPHERCOST_RELEASE_SBOM=$PWD/dist/ciphercost-$version.cdx.json \
    $tools/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# Panics and C's __FILE__ name source files: these prefixes stand for the directories of this machine.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
export CARGO_ENCODED_RUSTFLAGS="--remap-path-prefix=$cargo_home=/cargo"$'\x1f'"--remap-path-prefix=$PWD=/ciphercost"
# maturin strips the agent. Without debugging information there is less to strip, and no path in it.
export CARGO_PROFILE_RELEASE_DEBUG=false
# openssl-src installs OpenSSL below target/, and OpenSSL would look there for engines and modules, which it is built without.
export GNUMAKEFLAGS='ENGINESDIR=/usr/local/ssl/engines-3 MODULESDIR=/usr/local/ssl/ossl-modules'

# OpenSSL keeps the command that compiled it, so this compiler has a short name and holds its own paths.
# compiler TARGET: prints the directory that holds it
compiler() {
    local place=$PWD/$tools/compilers/$1 zig
    zig=${1%%-*}-linux-gnu.${glibc/_/.}
    mkdir -p "$place"
    cat >"$place/zigcc" <<EOF
#!/bin/sh
export CARGO_ZIGBUILD_ZIG_VERSION=$($tools/bin/python -m ziglang version) # maturin would ask for it each time
export CARGO_ZIGBUILD_ZIG_COMMAND="$PWD/$tools/bin/python" CARGO_ZIGBUILD_ZIG_COMMAND_ARGS='-m ziglang'
exec "$PWD/$tools/bin/maturin" zig cc -- -target $zig -fno-sanitize=all \\
    "-ffile-prefix-map=$cargo_home=/cargo" "-ffile-prefix-map=$PWD=/ciphercost" "\$@"
EOF
    chmod +x "$place/zigcc"
    echo "$place"
}

for target in $targets; do
    echo "building ciphercost-agent $version for $target (OpenSSL, SQLCipher and the agent: some minutes the first time)"
    rustup --quiet target add "$target" 2>/dev/null || rustup target add "$target"
    list=dist/ciphercost_agent-$version-${target%%-*}.cdx.json
    sbom agent --target "$target" -o "$list"
    # maturin finds zig as the Python module ziglang. It refuses the wheel if the binary needs more than this glibc.
    env PATH="$(compiler "$target"):$PWD/$tools/bin:$PATH" "CC_${target//-/_}=zigcc" \
        maturin build --quiet --release --zig --target "$target" --compatibility "manylinux_$glibc" \
        --manifest-path agents/rust/Cargo.toml --sbom-include "$PWD/$list" --out dist
done

echo
for wheel in dist/ciphercost_agent-*.whl; do # a second opinion: the oldest system that each binary runs on
    $tools/bin/auditwheel show "$wheel" | tr '\n' ' ' | grep -o '[^ ]* is consistent with the following platform tag: "[^"]*"'
done
sbom check dist/*.whl
ls -l dist | awk 'NR > 1 { printf "%6.1f MB  dist/%s\n", $5 / 1e6, $9 }'
(cd dist && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
