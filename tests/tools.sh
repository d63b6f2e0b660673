#!/bin/sh
# Installs what the build needs and is missing: by apt when root, else says what to type.
set -eu
missing=""
command -v cmake >/dev/null 2>&1 || missing="$missing cmake"
command -v nasm >/dev/null 2>&1 || missing="$missing nasm"
command -v c++ >/dev/null 2>&1 || missing="$missing g++"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "installing:$missing"
  apt-get update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null
else
  echo "prep is built with libjpeg-turbo, which needs:$missing" >&2
  echo "type:  sudo apt-get install -y$missing" >&2
  echo "or build without it (slower):  cargo build --release --no-default-features" >&2
  exit 1
fi
