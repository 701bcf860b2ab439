#!/usr/bin/env bash
# scripts/unpack-test-data.sh -- unpacks tests/data/*.tar.xz and the tokenizer into .deps/testdata.
# Does nothing when that folder is newer than the archives. Appears by rename: whole or not at all.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

target=$root/.deps/testdata
stamp=$target/.unpacked
archives=("$root"/tests/data/*.tar.xz "$root"/data/qwen3-tokenizer/tokenizer.json.xz)

fresh() {
  local archive
  [[ -e $stamp ]] || return 1
  for archive in "${archives[@]}" "$root/scripts/unpack-test-data.sh"; do
    [[ $archive -nt $stamp ]] && return 1
  done
  return 0
}

unpack() {
  local draft=$target.draft name
  have xz || die "xz is missing" "run scripts/setup.sh, or install xz-utils"
  rm -rf "$draft"
  mkdir -p "$draft/reference/model" "$draft/cases" "$draft/qwen3-tokenizer"
  for name in cases train model; do
    tar -C "$draft/reference" --no-same-owner -xJf "tests/data/reference-$name.tar.xz"
  done
  tar -C "$draft/cases" --no-same-owner -xJf tests/data/cases.tar.xz
  xz -dc data/qwen3-tokenizer/tokenizer.json.xz >"$draft/qwen3-tokenizer/tokenizer.json"
  cp data/qwen3-tokenizer/tokenizer_config.json "$draft/qwen3-tokenizer/"

  # A complete model directory: the tiny weights beside the tokenizer.
  (
    cd "$draft/reference/model"
    ln -s ../tiny-model/* ../../qwen3-tokenizer/* .
  )
  touch "$draft/.unpacked"
  rm -rf "$target"
  mv "$draft" "$target"
}

mkdir -p "$root/.deps"
exec 9>"$root/.deps/testdata.lock"
flock 9
if ! fresh; then
  unpack
  say "test data unpacked into $target"
fi
