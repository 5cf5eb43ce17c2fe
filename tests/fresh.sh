#!/usr/bin/env bash
# Runs the README's two commands on bare machines: minimal Debian 12 and 13 with exactly the packages that README.md lists, each as
# root and as an ordinary user. Run it before every release.
#   tests/fresh.sh [wheels] [12|13]… [root|user]…         logs: .make/fresh/      FRESH_TESTS: other tests than the subset below
# With `wheels`: the roots have Python and nothing else. There the wheels in dist/ are installed, and then tried: `ciphercost quick`, all
# lists, the help of each study, two small studies, and every command block of README.md and docs/ that is marked `sh`.
# A root is a directory that is removed at the end. Each command runs in mount and PID namespaces of its own, so that its mounts and
# processes end with it, even when this script is killed (kill -9 leaves the directory, /var/tmp/ciphercost-fresh.*). The kernel's
# settings are read-only in there, so idle cores halt.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
tests=${FRESH_TESTS:-tests/mechanisms/test_sqlcipher.py tests/load/test_vectors.py tests/plan/test_schedule.py tests/model/test_run_directory.py tests/repository/test_toolchain.py}
declare -A suites=([12]=bookworm [13]=trixie)

die() { printf '%s\n' "make fresh: $1" >&2; exit 2; }

versions=() users=() wheels=
for word in "$@"; do
    case $word in
        12 | 13) versions+=("$word") ;;
        root | user) users+=("$word") ;;
        wheels) wheels=$(ls "$here"/dist/ciphercost-*.whl "$here"/dist/ciphercost_agent-*"$(uname -m)".whl 2>/dev/null) || die "dist/ has no wheels of both distributions; run make release" ;;
        *) die "$word: not 'wheels', a Debian version (12, 13) or a user (root, user)" ;;
    esac
done
[ ${#versions[@]} = 0 ] && versions=(13 12)
[ ${#users[@]} = 0 ] && users=(root user)

[ "$(id -u)" = 0 ] || die "needs root to create and enter Debian systems; run it as root"
for program in mmdebstrap git unshare setpriv chroot; do
    command -v $program >/dev/null || die "$program was not found; on Debian: apt-get install mmdebstrap git util-linux coreutils"
done

# repository LABEL: the URI from which this machine's apt gets it.
repository() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' "Label: $1" 2>/dev/null | head -n 1
}
mirror=${CIPHERCOST_DEBIAN_MIRROR:-$(repository Debian)}
[ -n "$mirror" ] || die "this machine's apt has no Debian mirror; run apt-get update, or set CIPHERCOST_DEBIAN_MIRROR to the URI of a mirror"
security=$(repository Debian-Security)

cd "$here" && commit=$(git rev-parse HEAD) || die "$here is not a git clone with a commit, which this tests"
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "ignoring uncommitted changes; testing ${commit:0:9}"
logs=$here/.make/fresh
mkdir -p "$logs"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/ciphercost-fresh.XXXXXX")
child=
stop() {
    trap '' INT TERM HUP
    [ -n "$child" ] && kill -KILL "$child" 2>/dev/null && wait "$child" 2>/dev/null
    exit 130
}
trap 'rm -rf --one-file-system "$work"' EXIT
trap stop INT TERM HUP

# watched LOG COMMAND…: run it with its output in LOG, so that a signal to this script also ends it.
watched() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 </dev/null &
    child=$!
    wait "$child"
    local status=$?
    child=
    return $status
}

# Settings of this machine's package clients, so that they work in the new system too.
settings=()
while IFS='=' read -r -d '' name value; do
    case $name in
        CARGO_HOME | CARGO_TARGET_DIR | CARGO_MANIFEST_* | CARGO_PKG_* | CARGO_MAKE* | PIP_TARGET | PIP_PREFIX | PIP_CACHE_DIR) ;;
        PIP_FIND_LINKS) [[ $value == *://* ]] && settings+=("$name=$value") ;; # the new system does not have this machine's directories
        PIP_* | CARGO_* | MAVEN_* | CIPHERCOST_DEBIAN_MIRROR | [Hh][Tt][Tt][Pp]_[Pp][Rr][Oo][Xx][Yy] | [Hh][Tt][Tt][Pp][Ss]_[Pp][Rr][Oo][Xx][Yy] | \
            [Nn][Oo]_[Pp][Rr][Oo][Xx][Yy] | [Aa][Ll][Ll]_[Pp][Rr][Oo][Xx][Yy]) settings+=("$name=$value") ;;
    esac
done < <(env -0)

# carry ROOT HOME: copy the clients' settings, and certificates that an administrator added.
carry() {
    local root=$1 home=$2 file
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
        [ -e $file ] && cp -L $file "$root$file"
    done
    for file in .config/pip/pip.conf .pip/pip.conf .m2/settings.xml; do
        [ -e ~/$file ] && mkdir -p "$root$home/$(dirname $file)" && cp -L ~/$file "$root$home/$file"
    done
    file=${CARGO_HOME:-$HOME/.cargo}/config.toml
    [ -e "$file" ] && mkdir -p "$root$home/.cargo" && cp -L "$file" "$root$home/.cargo/"
    if [ -x "$root/usr/sbin/update-ca-certificates" ] && compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
        cp -L /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
        chroot "$root" update-ca-certificates >/dev/null 2>&1
    fi
}

# make_root VERSION DIRECTORY
make_root() {
    local version=$1 root=$2 suite=${suites[$1]} packages
    packages=$(sed -n "s/^    Debian $version  *apt-get install //p" <(git show "$commit:README.md"))
    [ -n "$packages" ] || die "README.md names no packages for Debian $version"
    # The certificates are those that pip may be set to use; see `settings`.
    [ -z "$wheels" ] || packages="python3-venv ca-certificates"
    local sources=("deb $mirror $suite main" "deb $mirror $suite-updates main")
    [ -n "$security" ] && sources+=("deb $security $suite-security main")
    echo "Debian $version: creating a system with $packages"
    apt-config dump | grep '^Acquire::.*[Pp]roxy\|^Acquire::https\?::.*\(CaInfo\|Verify\)' >"$work/apt.conf"
    watched "$logs/debian-$version.log" setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc mmdebstrap --mode=root --variant=minbase --include="${packages// /,}" \
        --aptopt="$work/apt.conf" "$suite" "$root" "${sources[@]}" || {
        tail -n 20 "$logs/debian-$version.log"
        return 1
    }
    carry "$root" /root
    chroot "$root" useradd --create-home --shell /bin/bash user
    # mmdebstrap removes the package lists, which a normal machine has.
    watched "$logs/debian-$version-apt.log" enter "$root" root /root / apt-get update
    return 0
}

# enter ROOT USER HOME DIRECTORY COMMAND…: run it in its own namespaces; of this machine's environment it gets only `settings`.
enter() {
    local root=$1 user=$2 home=$3 directory=$4
    shift 4
    exec setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child bash -c '
        root=$1 user=$2 directory=$3
        shift 3
        mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount --rbind /sys "$root/sys" &&
            mount -o remount,bind,ro "$root/sys" && # settings of this machine: no supervisor outlives a kill -9 here
            exec chroot --userspec="$user:$user" "$root" env -i --chdir="$directory" "$@"' \
        - "$root" "$user" "$directory" "HOME=$home" "USER=$user" LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${settings[@]}" "$@"
}

lines=() failed=0
# try VERSION USER LABEL COMMAND…
try() {
    local version=$1 user=$2 label=$3 log began=$SECONDS status line home=/root
    shift 3
    [ "$user" = root ] || home=/home/$user
    log=$logs/debian-$version-$user-${label// /-}.log
    echo "Debian $version, $user: $* (log: ${log#"$here"/})"
    watched "$log" enter "$work/$version" "$user" "$home" "$home/ciphercost" "$@"
    status=$?
    [ $status = 0 ] || { failed=1; tail -n 30 "$log" | sed 's/^/    /'; }
    printf -v line 'Debian %-3s %-5s %-19s exit %-3s %5s s' "$version" "$user" "$label" $status $((SECONDS - began))
    echo "$line"
    lines+=("$line")
}

# try_clone VERSION USER DIRECTORY: build the commit that is tested.
try_clone() {
    git archive "$commit" | tar -x -C "$3"
    give "$@"
    try "$1" "$2" "make quick" make quick
    try "$1" "$2" "make test" make test TESTS="$tests"
}

# try_wheels VERSION USER DIRECTORY: install the wheels.
try_wheels() {
    cp $wheels "$3"
    mkdir "$3/documents" && git archive "$commit" README.md docs tests/helpers/documented.py | tar -x -C "$3/documents"
    give "$@"
    try "$1" "$2" "pip install" bash -c 'python3 -m venv . && bin/pip install ./*.whl && du -sm --exclude="*.whl" .'
    try "$1" "$2" "ciphercost versions" bin/ciphercost --version -v
    try "$1" "$2" "ciphercost doctor" bin/ciphercost doctor --fix
    try "$1" "$2" "ciphercost quick" \
        bash -o pipefail -c 'bin/ciphercost quick --no-progress | tee quick.txt && ! grep "OpenSSL does not use" quick.txt'
    try "$1" "$2" "ciphercost list" bash -e -c 'bin/ciphercost list; for each in engines mechanisms workloads studies runs grants; do bin/ciphercost list $each; done'
    try "$1" "$2" "help of studies" bash -e -c '
        for each in $(bin/python -c "from ciphercost.studies import catalogue; print(*catalogue.names())"); do
            bin/ciphercost replicate "$each" --help
            bin/ciphercost replicate "$each" --engine none-such && exit 1
            [ $? = 2 ]
        done'
    try "$1" "$2" "replicate valkey-tls" bin/ciphercost replicate valkey-tls --quick --time 3s --duration 1s --runs 2 --no-progress
    try "$1" "$2" "replicate mysql-tls" bin/ciphercost replicate mysql-tls --engine mariadb --rows 1000 --iterations 1 --queries 100 --quick --time 2s --no-progress
    try "$1" "$2" "documented blocks" bash -c 'PATH=$PWD/bin:$PATH; python documents/tests/helpers/documented.py documents'
    try "$1" "$2" "extra ray" bash -c 'for each in ./ciphercost-*.whl; do bin/pip install "$each[ray]"; done'
    try "$1" "$2" "page of ray" bash -c 'PATH=$PWD/bin:$PATH; python documents/tests/helpers/documented.py documents docs/how-to/many-load-machines.md'
}

# give VERSION USER: the user's home and what is in it.
give() {
    [ "$2" = root ] || chroot "$work/$1" chown -R "$2:$2" "/home/$2"
}

# In braces, so that bash has read all of it before it begins: whoever edits this file meanwhile changes nothing.
{
    for version in "${versions[@]}"; do
        root=$work/$version
        if ! make_root "$version" "$root"; then
            failed=1
            lines+=("Debian $version: could not create the system (log: .make/fresh/debian-$version.log)")
            continue
        fi
        for user in "${users[@]}"; do
            home=/root
            [ "$user" = root ] || home=/home/$user
            carry "$root" "$home"
            mkdir "$root$home/ciphercost"
            if [ -n "$wheels" ]; then
                try_wheels "$version" "$user" "$root$home/ciphercost"
            else
                try_clone "$version" "$user" "$root$home/ciphercost"
            fi
            rm -rf --one-file-system "$root$home/ciphercost"
        done
        rm -rf --one-file-system "$root"
    done

    echo
    printf '%s\n' "${lines[@]}"
    exit $failed
}
