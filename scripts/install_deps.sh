#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages of the named groups (packages.txt; default: build). Does nothing, and
# needs no rights, when all are there.
set -eu
list="$(dirname "$0")/packages.txt"
[ $# -gt 0 ] || set -- build

if ! command -v dpkg-query >/dev/null; then
  echo "install_deps: not a Debian system; see $list for what is needed" >&2
  exit 0
fi

missing=
for group in "$@"; do
  wanted=$(awk -v group="$group" '$1 == group { print $2 }' "$list")
  if [ -z "$wanted" ]; then
    echo "install_deps: no group '$group' in $list" >&2
    exit 2
  fi
  for package in $wanted; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing="$missing $package"
  done
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install_deps: missing:$missing; install them as root, or install sudo" >&2
    exit 1
  fi
  as_root="sudo"
fi

install() {
  # shellcheck disable=SC2086  # lists of words
  $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --quiet --no-install-recommends $missing
}

echo "install_deps: installing$missing"
# A package list that is absent or out of date shows as a failed install; then it is renewed.
if [ -n "$(find /var/lib/apt/lists -name '*_Packages*' 2>/dev/null | head -n 1)" ] && install; then
  exit 0
fi
$as_root apt-get update --quiet
install
