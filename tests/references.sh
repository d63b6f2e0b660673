#!/bin/sh
# Compares results with independent implementations in Python (NumPy, Pillow, scikit-learn), in an environment of its own.
set -eu
cd "$(dirname "$0")/.."
venv=target/references
if ! "$venv/bin/python" -c "import numpy, PIL, sklearn" >/dev/null 2>&1; then
  if ! python3 -c "import venv, ensurepip" >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
      apt-get update -qq
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3 python3-venv >/dev/null
    else
      echo "the comparison with Python references needs python3 with venv: sudo apt-get install -y python3-venv" >&2
      exit 1
    fi
  fi
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet numpy pillow scikit-learn
fi
PREP=${PREP:-$(pwd)/target/debug/prep}
export PREP
seen=0
for script in tests/references/*.py; do
  echo "== $script"
  "$venv/bin/python" "$script"
  seen=$((seen + 1))
done
[ "$seen" -gt 0 ] || { echo "no reference script was found" >&2; exit 1; }
