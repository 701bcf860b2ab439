#!/usr/bin/env bash
# scripts/test.sh -- installs what is missing, builds, and runs every test.
#   --preset NAME   a preset of CMakePresets.json (default ci)
#   anything else   goes to ctest: -R REGEX, -L LABEL, -j N, ...
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

preset=ci
arguments=()
while (($# > 0)); do
  case $1 in
    --preset)
      preset=${2:?--preset needs a name}
      shift
      ;;
    -h | --help)
      sed -n '2,4s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) arguments+=("$1") ;;
  esac
  shift
done

use_ccache
stage "install what is missing" scripts/setup.sh --tests
stage "unpack the test data" scripts/unpack-test-data.sh
stage "configure ($preset)" cmake --preset "$preset" -DVLRERANK_TESTS=ON
stage "build ($preset)" build_quietly "build/$preset"
stage "run the tests" ctest --test-dir "build/$preset" --output-on-failure --no-tests=error \
  -j "$(nproc)" "${arguments[@]}"
stage_table
