#!/bin/sh
# Golden tests with the real libraries: what prep packs must be read by them with the same pixels, labels and counts.
# Not part of `make test`: they install some 6 GB (torch), each in an environment of its own below target/ or $LOADERS.
# usage: tests/loaders.sh [NAME...]   names: streaming litdata webdataset datasets ffcv torch decode (all)
set -eu
cd "$(dirname "$0")/.."
base=${LOADERS:-$(pwd)/target/loaders}
PREP=${PREP:-$(pwd)/target/debug/prep}
export PREP HF_DATASETS_OFFLINE=1 HF_HUB_OFFLINE=1 DO_NOT_TRACK=1 DISABLE_LITDATA_TELEMETRY=1 PYTHONWARNINGS=ignore
mkdir -p "$base"
main=$base/main/bin/python
wanted=${*:-streaming litdata webdataset datasets ffcv torch decode}

# The libraries that live together, in the newest versions; mosaicml-streaming pins transformers below 5.
if ! "$main" -c "import torch, torchvision, streaming, litdata, webdataset, wids" >/dev/null 2>&1; then
  python3 -m venv "$base/main"
  "$main" -m pip install --quiet torch torchvision numpy pillow mosaicml-streaming==0.13.0 litdata==0.2.76 webdataset==1.0.2 wids==0.1.11
fi
# Older versions over the same dependencies: a folder each, put in front of the path.
older() {
  [ -d "$base/$1-$2" ] || "$main" -m pip install --quiet --no-deps --target "$base/$1-$2" "$3==$2"
}
run() { # NAME VERSION-FOLDER-OR-EMPTY PYTHON
  echo "== $1 ${2:+($2)}"
  PYTHONPATH="${2:+$base/$2:}tests/loaders:python" timeout 900 "$3" "tests/loaders/read_$1.py" "$data"
  seen=$((seen + 1))
}

data=$(mktemp -d "$base/data.XXXXXX")
trap 'rm -rf "$data"' EXIT
PYTHONPATH=tests/loaders:python "$main" tests/loaders/packed.py "$data"
seen=0
for name in $wanted; do
  case $name in
  streaming)
    older streaming 0.7.6 mosaicml-streaming
    older streaming 0.9.1 mosaicml-streaming
    for version in streaming-0.7.6 streaming-0.9.1 ""; do run streaming "$version" "$main"; done ;;
  litdata)
    older litdata 0.2.45 litdata
    for version in litdata-0.2.45 ""; do run litdata "$version" "$main"; done ;;
  webdataset | torch) run "$name" "" "$main" ;;
  datasets) # wants a newer huggingface-hub than streaming bears
    if ! "$base/datasets/bin/python" -c "import datasets, PIL" >/dev/null 2>&1; then
      python3 -m venv "$base/datasets"
      "$base/datasets/bin/python" -m pip install --quiet datasets==5.2.0 pillow
    fi
    run datasets "" "$base/datasets/bin/python" ;;
  ffcv) # builds only where OpenCV and libjpeg-turbo are installed with their headers
    if "$base/ffcv/bin/python" -c "import ffcv" >/dev/null 2>&1; then
      run ffcv "" "$base/ffcv/bin/python"
    else
      echo "== ffcv: NOT RUN, $base/ffcv has no ffcv (docs/reader.md says how to build it)"
    fi ;;
  decode) # the compiled decoder, from `make wheel`
    if "$main" -c "import prep_decode" >/dev/null 2>&1; then
      run decode "" "$main"
    else
      echo "== decode: NOT RUN, make wheel and install it: $main -m pip install --no-deps target/wheels/imgprep-*.whl"
    fi ;;
  *) echo "no test called $name" >&2; exit 2 ;;
  esac
done
echo "$seen passed, 0 failed"
