#!/usr/bin/env bash
# scripts/demo.sh -- the whole job in small: installs, builds, makes an emoji search set, trains a small model on it on two
# CPU ranks, and shows how much better it ranks. What is done already is not done again.
#   --seed N     another start and another order (default 1); every seed has its own run directory
#   --again      forget this seed's results and train anew
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

demo=$root/runs/demo
program=$root/build/demo/bin/vlrerank
seed=1
again=no

data_options=(--emoji 80 --languages "en,de" --pairs 16 --negatives 20 --hard 0.3 --list-size 10 --dev-rows 400)
model_options=(--size tiny --hidden-size 128 --intermediate-size 384 --num-hidden-layers 3 --num-attention-heads 4
  --num-key-value-heads 2 --head-dim 32 --vision-depth 2 --vision-hidden-size 128 --vision-num-heads 4
  --vision-intermediate-size 256 --initializer-range 0.05 --embedding-range 0.5 --tie-word-embeddings true
  --dtype float32)
picture_options=(--image-max-tokens 9)  # 96 x 96 pixels: what a shard was made with, its readers must ask for
train_options=(--tuner full --freeze-vit false --freeze-aligner false --freeze-embedding true --loss listwise
  --max-negatives 5 --learning-rate 1e-3 --adam-beta2 0.98 --warmup-steps 50 --weight-decay 0.01 --max-steps 800
  --global-batch-size 16 --logging-steps 50 --eval-strategy no --save-steps 100000 --save-only-model true)

while (($# > 0)); do
  case $1 in
    --seed)
      seed=${2:?--seed needs a number}
      shift
      ;;
    --again) again=yes ;;
    -h | --help)
      sed -n '2,5s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) die "unknown option $1" "scripts/demo.sh [--seed N] [--again]" ;;
  esac
  shift
done

run=$demo/seed-$seed
sets=(dev-queries dev-pictures)
export OMP_NUM_THREADS=$((($(nproc) + 1) / 2))

# What each result is made from: its own options and those of all before it.
shards_key="${data_options[*]} | ${picture_options[*]}"
model_key="$seed ${model_options[*]}"
train_key="$shards_key | $model_key | ${train_options[*]}"

# once RESULT KEY COMMAND...: runs the command unless the result is there, made from the same options.
once() {
  local result=$1 key=$2 record=$1.made-from
  shift 2
  if [[ -e $result && -f $record && $(<"$record") == "$key" ]]; then
    note "   there already: ${result#"$root"/}"
    return
  fi
  rm -rf "$result" "$record"
  "$@"
  printf '%s\n' "$key" >"$record"
}

build() {
  cmake --preset cpu -B build/demo -DVLRERANK_TESTS=OFF >build/demo-configure.log ||
    die "configuring failed" "see build/demo-configure.log"
  build_quietly build/demo vlrerank
}

on_ranks() { mpirun -n 2 --oversubscribe --bind-to none "$program" "$@" </dev/null; }

make_data() {
  once "$demo/data" "${data_options[*]}" data/emoji/build "$demo/data" "${data_options[@]}"
}

make_model() {
  once "$run-base" "$model_key" "$program" new-model --output "$run-base" --seed "$seed" \
    --tokenizer "$root/.deps/testdata/qwen3-tokenizer" "${model_options[@]}"
}

prepare() {
  local name
  for name in train "${sets[@]}"; do
    once "$demo/shards/$name" "$shards_key" on_ranks prepare --model "$run-base" \
      --dataset "$demo/data/$name.jsonl" --output "$demo/shards/$name" "${picture_options[@]}"
  done
}

# evaluate WHEN MODEL KEY: $run-WHEN-SET.jsonl takes the metrics of every row.
evaluate() {
  local name
  for name in "${sets[@]}"; do
    once "$run-$1-$name.jsonl" "$3" on_ranks eval --model "$2" --dataset "$demo/shards/$name" \
      "${picture_options[@]}" --per-query "$run-$1-$name.jsonl"
  done
}

train() {
  once "$run" "$train_key" on_ranks train --model "$run-base" --dataset "$demo/shards/train" \
    --output-dir "$run" --seed "$seed" "${picture_options[@]}" "${train_options[@]}"
}

summary() {
  local name learned=yes
  for name in "${sets[@]}"; do
    scripts/demo-summary "$name" "$run-before-$name.jsonl" "$run-after-$name.jsonl" || learned=no
  done
  [[ $learned == yes ]] || die "the model did not learn to find what it was asked for" "scripts/demo.sh --again --seed $((seed + 1))"
  say ""
  say "run directory:    ${run#"$root"/}   (curves: metrics.jsonl and TensorBoard's event file)"
  say "try next:         scripts/demo.sh --seed 2"
  say "                  ${program#"$root"/} train --help"
  say "your own data:    README.md, \"Train on your data\""
}

mkdir -p build "$demo/shards"
[[ $again == no ]] || rm -rf "$run" "$run".* "$run"-*
stage "install what is missing" scripts/setup.sh
stage "unpack the tokenizer" scripts/unpack-test-data.sh
use_ccache
stage "build" build
stage "make the emoji data" make_data
stage "make a random model" make_model
stage "prepare: JSONL to HDF5 shards" prepare
stage "evaluate the untrained model" evaluate before "$run-base" "$shards_key | $model_key"
stage "train on 2 ranks" train
stage "evaluate the trained model" evaluate after "$run/last" "$train_key"
stage "results" summary
stage_table
