#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command of a clone of this repository on a bare Debian 12, in a chroot: what a new user's
# machine has, and nothing that was ever installed by hand. bare.sh COMMAND...; needs root.
# The bare system and the packages it downloads are kept in ~/.cache/quench-bare between runs.
# Exits with the command's status; without root with 77 (skipped), or 1 in CI.
set -eu
project=$(cd "$(dirname "$0")/.." && pwd -P)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/quench-bare

no_bare_machine() {
  echo "bare: $1" >&2
  [ "${CI:-}" = true ] && exit 1
  exit 77
}

# The outer half: the folder of the bare system. Only the inner half, in a mount namespace of its
# own, ever mounts anything below it, so that removing the folder cannot reach what was mounted.
if [ "${1:-}" != --inside ]; then
  if [ -n "${QUENCH_BARE:-}" ]; then
    echo "bare: this is the bare machine already" >&2
    exit 77
  fi
  [ "$(id -u)" -eq 0 ] || no_bare_machine "a chroot needs root"
  command -v mmdebstrap >/dev/null || no_bare_machine "mmdebstrap is missing; make deps-test"
  mkdir -p "$cache/packages"
  if [ ! -f "$cache/debian.tar" ]; then
    echo "bare: making a bare Debian 12"
    mmdebstrap --quiet --variant=apt --include=ca-certificates,git,make bookworm "$cache/part.tar"
    mv "$cache/part.tar" "$cache/debian.tar"
  fi
  if [ -n "$(git -C "$project" -c safe.directory='*' status --porcelain)" ]; then
    echo "bare: what is not committed is not part of the clone" >&2
  fi
  root=$(mktemp -d)
  trap 'rm -rf --one-file-system "$root"' EXIT
  trap 'exit 130' INT TERM
  status=0
  unshare --mount --propagation private "$0" --inside "$root" "$@" || status=$?
  if grep -q " $root/" /proc/self/mountinfo; then
    echo "bare: something is still mounted below $root, which is left as it is" >&2
    trap - EXIT
  fi
  exit "$status"
fi

root=$2
shift 2
tar -xf "$cache/debian.tar" -C "$root"
for folder in proc dev; do mount --rbind "/$folder" "$root/$folder"; done
mkdir -p "$root/var/cache/apt/archives" "$root/shared" "$root/files"
mount --bind "$cache/packages" "$root/var/cache/apt/archives"
if [ -d "$project/../shared" ]; then
  mount --bind -o ro "$project/../shared" "$root/shared"
fi
if [ -n "${QUENCH_BARE_FILES:-}" ]; then  # a folder that the command finds as /files
  mount --bind -o ro "$QUENCH_BARE_FILES" "$root/files"
fi

# Name server, certificates, apt's and pip's settings are the network's, not the machine's.
cp -L /etc/resolv.conf "$root/etc/" 2>/dev/null || true
cp -a /etc/ssl/certs/. "$root/etc/ssl/certs/" 2>/dev/null || true
[ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
for setting in /etc/apt/apt.conf.d/*; do
  if grep -q '^ *Acquire' "$setting"; then cp "$setting" "$root/etc/apt/apt.conf.d/"; fi
done
rm -f "$root/etc/apt/apt.conf.d/docker-clean"  # it empties the shared folder of packages
echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/bare"  # nothing here outlives the run

git -c safe.directory='*' clone --quiet "$project" "$root/project"
exec chroot "$root" /usr/bin/env -i PATH="$PATH" HOME=/root CI="${CI:-}" QUENCH_BARE=1 \
  sh -c 'cd /project && exec "$@"' bare "$@"
