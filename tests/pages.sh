#!/bin/sh
# The HTML pages in a real browser: opens them offline, filters, marks, saves, and runs axe over them.
# Chromium and Node come from apt where they are missing; playwright-core and axe-core go into target/pages.
set -eu
cd "$(dirname "$0")/.."
here=target/pages
mkdir -p "$here"

browser() {
  for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
    [ -n "$name" ] && command -v "$name" && return 0
  done
  return 1
}

missing=""
browser >/dev/null || missing="$missing chromium"
command -v node >/dev/null 2>&1 || missing="$missing nodejs"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
if [ -n "$missing" ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing:$missing"
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null
  else
    echo "the tests of the HTML pages need:$missing" >&2
    echo "type:  sudo apt-get install -y$missing   (or set CHROMIUM to a browser of that family)" >&2
    exit 1
  fi
fi
CHROMIUM=$(browser) || { echo "no Chromium was found after it was installed; set CHROMIUM to its path" >&2; exit 1; }
export CHROMIUM
if [ ! -d "$here/node_modules/playwright-core" ] || [ ! -d "$here/node_modules/axe-core" ]; then
  npm install --silent --no-audit --no-fund --prefix "$here" playwright-core@1.65 axe-core@4.14
fi

${CARGO:-cargo} build --quiet --bin prep --example page_data
target=${CARGO_TARGET_DIR:-target}
export PREP="${PREP:-$target/debug/prep}"
rm -rf "$here/data"
"$target/debug/examples/page_data" "$here/data"
seen=0
for test in tests/pages/*.mjs; do
  [ "$test" != tests/pages/browser.mjs ] || continue
  echo "== $test"
  node "$test"
  seen=$((seen + 1))
done
[ "$seen" -gt 0 ] || { echo "no test of the pages was found" >&2; exit 1; }
