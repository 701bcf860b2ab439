# shellcheck shell=bash
# scripts/common.sh -- what the scripts share; sourced, never run. Sets `root` (the source tree) and
# moves there. Colours only on a terminal; every stage prints what it took.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' dim=$'\e[2m' plain=$'\e[0m'
else
  bold='' red='' green='' dim='' plain=''
fi

say() { printf '%s\n' "$*"; }
good() { printf '%s%s%s\n' "$green" "$*" "$plain"; }
note() { printf '%s%s%s\n' "$dim" "$*" "$plain"; }

# die MESSAGE [REMEDY]: one clear line, what to do, exit 1.
die() {
  printf '%serror:%s %s\n' "$red" "$plain" "$1" >&2
  [[ $# -lt 2 ]] || printf '  fix: %s\n' "$2" >&2
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# stage NAME COMMAND...: runs the command under a headline, then prints its time. The command runs
# in this shell, with errexit in force: call it as a plain statement, never behind `if` or `||`.
stage_names=()
stage_seconds=()
stage_open=''
stage() {
  local name=$1 began=$SECONDS
  shift
  stage_open=$name
  printf '%s== %s%s\n' "$bold" "$name" "$plain"
  "$@"
  stage_open=''
  stage_names+=("$name")
  stage_seconds+=($((SECONDS - began)))
  printf '%s   %s: %d s%s\n' "$dim" "$name" $((SECONDS - began)) "$plain"
}

# A script that ends inside a stage names it last.
end_of_script() {
  local code=$?
  ((code == 0)) || [[ -z $stage_open ]] ||
    printf '%s%s: "%s" failed (exit %d) after %d s%s\n' "$red" "${0##*/}" "$stage_open" "$code" "$SECONDS" "$plain" >&2
}
trap end_of_script EXIT

# The times of all stages so far, as a table.
stage_table() {
  local i
  for i in "${!stage_names[@]}"; do
    printf '  %5d s  %s\n' "${stage_seconds[i]}" "${stage_names[i]}"
  done
  printf '  %5d s  %s\n' "$SECONDS" "in all"
}

# Parallel jobs that memory bears: a file that includes ATen takes 1.5 GiB to compile.
build_jobs() {
  local cores mib
  cores=$(nproc)
  mib=$(awk '/MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
  ((mib / 1500 < cores)) && cores=$((mib / 1500 > 0 ? mib / 1500 : 1))
  echo "$cores"
}

# Compiles through ccache where it is, with settings that let it serve a clone in another folder.
use_ccache() {
  have ccache || return 0
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
}

# build_quietly FOLDER [TARGET...]: progress on a terminal; elsewhere only what went wrong.
build_quietly() {
  local folder=$1 options=()
  shift
  (($# == 0)) || options=(--target "$@")
  if [[ -t 1 ]]; then
    cmake --build "$folder" -j "$(build_jobs)" "${options[@]}"
  elif ! cmake --build "$folder" -j "$(build_jobs)" "${options[@]}" >"$folder/build.log" 2>&1; then
    grep -nE -A12 '(error|Error|FAILED|undefined reference)' "$folder/build.log" | head -n 120
    die "the build failed" "see $folder/build.log"
  else
    say "   $(grep -cE '^\[[0-9]+/' "$folder/build.log" || true) steps, log in $folder/build.log"
  fi
}

# mpirun refuses root unless told twice; containers and CI are root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
