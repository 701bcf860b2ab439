// config/foreign.cpp -- ms-swift's options that change nothing here, or that we cannot honour.
#include "config/foreign.hpp"

#include <algorithm>
#include <charconv>

#include "config/option.hpp"
#include "core/error.hpp"

namespace vlrerank {
namespace {

bool matches(std::string const& pattern, std::string const& word) {
  if (pattern.empty() || pattern.back() != '*') return pattern == word;
  return word.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
}

ForeignName ignored(char const* name, char const* reason) {
  return {name, {"*"}, reason, "", {}};
}

ForeignName only(char const* name, std::vector<std::string> harmless, char const* reason,
                 char const* remedy) {
  return {name, std::move(harmless), reason, remedy, {}};
}

ForeignName refused(char const* name, char const* remedy) {
  return {name, {}, "", remedy, {}};
}

ForeignName expanded(char const* name, std::map<std::string, std::string> keys,
                     char const* remedy) {
  return {name, {}, "", remedy, std::move(keys)};
}

std::vector<ForeignName> make_names() {
  auto const files = "metrics.jsonl and a TensorBoard file are always written to the run directory";
  auto const reader = "reading ahead is done by threads of the rank (--dataloader-num-workers)";
  auto const offline = "nothing is downloaded or uploaded";
  auto const packed = "batches are packed without padding, which changes no result";
  auto const mpi = "gradients travel over MPI or NCCL, all parameters in one pass";
  auto const quantised =
      "weights are not quantised; --dtype bfloat16 and --recompute full save memory";
  auto const sharding = "--zero 3 divides weights, gradients and optimizer state over the ranks";
  auto const rows = "the row forms that are accepted are found by themselves; see `vlrerank check`";
  auto const plugin = "there are no Python plug-ins: loss, metrics and data forms are options here";
  auto const parts = "--freeze-llm, --freeze-vit and --freeze-aligner choose what is trained";
  auto const lora = "plain LoRA (--lora-rank, --lora-alpha, --use-rslora) or --tuner full";
  auto const layout = "--zero divides the work; --micro-batch-tokens bounds memory";
  return {
      // What the run records.
      ignored("report-to", files),
      ignored("logging-dir", files),
      ignored("logging-first-step", "the first step is always logged"),
      only("logging-strategy", {"steps"}, "logging goes by --logging-steps", "--logging-steps N"),
      ignored("run-name", "the run is named by --output-dir"),
      ignored("log-level", files),
      ignored("swanlab-*", files),
      ignored("wandb-*", files),
      ignored("include-num-input-tokens-seen", "tokens/s is always logged"),
      ignored("add-version", "the run directory is --output-dir itself"),
      ignored("create-checkpoint-symlink", "the links best and last are always made"),
      only("save-safetensors", {"true"}, "weights are always safetensors", "leave it out"),
      only("safe-serialization", {"true"}, "weights are always safetensors", "leave it out"),
      ignored("max-shard-size", "files are divided by themselves"),
      only("save-on-each-node", {"false"}, "one copy is written",
           "put --output-dir on a file system that all nodes see"),
      only("push-to-hub", {"false"}, offline, "upload the run directory's best/ afterwards"),
      ignored("hub-*", offline),
      ignored("use-hf", offline),
      // The model.
      ignored("check-model", "the model's files are always checked"),
      ignored("model-type", "the model's config.json decides"),
      only("template", {"qwen3_vl_reranker", "qwen3-vl-reranker"}, "the prompt is the reranker's",
           "leave it out: the prompt is the reranker's own; --instruction changes its instruction"),
      only("task-type", {"generative_reranker"}, "this program trains nothing else",
           "--task-type generative_reranker: this program trains rerankers that answer yes or no"),
      refused("system", "--instruction TEXT: the system prompt belongs to the reranker"),
      refused("model-revision", "--model DIRECTORY of that revision: nothing is downloaded"),
      refused("model-author", "leave it out"),
      refused("local-repo-path", "leave it out: the model is built in"),
      refused("rope-scaling", "--max-length up to what the model was made for"),
      refused("max-model-len", "--max-length N"),
      refused("max-memory", layout),
      refused("device-map", "--zero 3: every rank holds its share of the weights"),
      refused("quant-method", quantised),
      refused("quant-bits", quantised),
      refused("bnb-*", quantised),
      refused("hqq-*", quantised),
      refused("load-in-*", quantised),
      refused("new-special-tokens", "put the tokens into the model's tokenizer.json first"),
      refused("init-strategy", "vlrerank new-model makes a random model"),
      ignored("experts-impl", "the model has no experts"),
      expanded("model-kwargs",
               {{"image_max_token_num", "image-max-tokens"},
                {"image_min_token_num", "image-min-tokens"},
                {"max_pixels", "max-pixels"},
                {"min_pixels", "min-pixels"}},
               "--image-max-tokens N and --image-min-tokens N"),
      // Adapters.
      only("use-dora", {"false"}, "LoRA is trained", lora),
      only("lora-bias", {"none"}, "biases are not trained", "--tuner full trains biases too"),
      only("lora-dtype", {"float32", "fp32", "none"}, "adapters are float32", "leave it out"),
      only("init-weights", {"true"}, "adapters start as PEFT's do",
           "--adapter DIR starts from another"),
      only("init-lora-weights", {"true"}, "adapters start as PEFT's do",
           "--adapter DIR starts from another"),
      only("tuner-backend", {"peft"}, "adapters are written in PEFT's layout", "leave it out"),
      refused("lorap-lr-ratio", "--learning-rate for A and B alike"),
      refused("modules-to-save", "--target-modules for adapters, or --tuner full"),
      refused("target-parameters", "--target-modules NAMES"),
      only("freeze-parameters-ratio", {"0", "0.0"}, "nothing is frozen by share", parts),
      refused("freeze-parameters*", parts),
      refused("trainable-parameters*", parts),
      refused("galore-*", lora),
      only("use-galore", {"false"}, "it is off here too", lora),
      refused("lisa-*", lora),
      refused("llamapro-*", lora),
      refused("adalora-*", lora),
      // Optimizer and loss.
      only("optim", {"adamw_torch*", "adamw"}, "AdamW is the optimizer",
           "leave it out: AdamW is the optimizer; --adam-beta1, --adam-beta2, --adam-epsilon"),
      only("optimizer", {"multimodal", "none"}, "--vit-lr and --aligner-lr make their own groups",
           "leave it out: AdamW is the optimizer"),
      expanded("lr-scheduler-kwargs",
               {{"min_lr", "min-lr"},
                {"min_lr_rate", "min-lr-rate"},
                {"min_lr_ratio", "min-lr-rate"},
                {"num_decay_steps", "lr-decay-steps"},
                {"num_warmup_steps", "warmup-steps"},
                {"power", "lr-power"}},
               "--min-lr, --min-lr-rate, --lr-decay-steps, --warmup-steps and --lr-power"),
      only("neftune-noise-alpha", {"0", "0.0", "none"}, "it is off here too",
           "leave it out: no noise is added to embeddings"),
      only("label-smoothing-factor", {"0", "0.0"}, "labels are used as they are",
           "labels between 0 and 1 in the data"),
      only("loss-scale", {"default"}, "every document counts alike", "--pos-weight W"),
      ignored("use-liger-kernel", "kernels of our own are always used"),
      ignored("average-tokens-across-devices", "the loss is a mean over the step's documents"),
      only("full-determinism", {"false"}, "it is off here too",
           "--seed N and --data-seed N decide everything random; leave it out"),
      ignored("vit-gradient-checkpointing",
              "--recompute decides; a frozen tower keeps no gradient"),
      ignored("gradient-checkpointing-kwargs", "--recompute decides"),
      // Data.
      ignored("dataset-num-proc", "`prepare` runs on as many ranks as it is started with"),
      ignored("load-from-cache-file",
              "shards are found by their content; --overwrite makes them again"),
      ignored("download-mode", offline),
      ignored("val-dataset-shuffle", "metrics do not depend on the order of rows"),
      ignored("lazy-tokenize", "rows are tokenised once, into shards"),
      ignored("group-by-length", "ranks share a step's rows by cost, which changes no result"),
      ignored("remove-unused-columns", rows),
      ignored("label-names", rows),
      ignored("preprocess-*", "pictures and tokens are made by `prepare`"),
      refused("columns", rows),
      refused("custom-*", rows),
      refused("external-plugins", plugin),
      refused("callbacks", plugin),
      only("streaming", {"false"}, "shards are always read as a stream",
           "leave it out: shards are always read as a stream, in bounded memory"),
      ignored("shuffle-buffer-size", "the order of rows is a permutation of all of them"),
      refused("interleave-prob", "--dataset a.jsonl#COUNT b.jsonl#COUNT"),
      refused("stopping-strategy", "--dataset a.jsonl#COUNT b.jsonl#COUNT"),
      refused("cached-dataset", "--dataset SHARDS, the directory that `prepare` made"),
      refused("cached-val-dataset", "--val-dataset SHARDS, the directory that `prepare` made"),
      only("truncation-strategy", {"delete"},
           "a document that is too long is shortened, its row is kept (--truncation document)",
           "--truncation document (the default: only a document's text tail is cut, never the "
           "prompt's end) or --truncation script (as Qwen's own script)"),
      ignored("packing", "batches are always packed; an optimizer step stays a number of rows"),
      ignored("packing-num-proc", packed),
      ignored("packing-strategy", packed),
      refused("packing-length", "--micro-batch-tokens N"),
      ignored("padding-free", packed),
      ignored("padding-side", packed),
      ignored("dataloader-pin-memory", reader),
      ignored("dataloader-prefetch-factor", reader),
      ignored("dataloader-persistent-workers", reader),
      // Course of the run.
      only("ignore-data-skip", {"false"}, "a resumed run goes on where it stopped",
           "--adapter CHECKPOINT starts a new run from its weights"),
      only("resume-only-model", {"false"}, "a resumed run goes on where it stopped",
           "--adapter CHECKPOINT starts a new run from its weights"),
      ignored("load-best-model-at-end", "the best checkpoint is kept under the link best"),
      ignored("greater-is-better", "it follows from --metric-for-best-model"),
      only("eval-delay", {"0", "0.0"}, "evaluation starts at once", "--eval-steps N"),
      only("eval-metric", {"reranker"}, "ranking metrics are always computed",
           "leave it out: ranking metrics are always computed"),
      ignored("eval-accumulation-steps", "only scores are kept"),
      only("eval-use-evalscope", {"false"}, "it is off here too", "vlrerank eval"),
      only("predict-with-generate", {"false"}, "a score needs no generation", "vlrerank score"),
      only("prediction-loss-only", {"false"}, "ranking metrics are always computed",
           "leave it out"),
      refused("early-stop-interval", "--max-steps N, or --num-train-epochs N"),
      refused("max-epochs", "--num-train-epochs N"),
      only("auto-find-batch-size", {"false"}, "--micro-batch-tokens is found by itself",
           "leave it out: --micro-batch-tokens is found by itself"),
      only("do-train", {"true"}, "`vlrerank train` trains", "vlrerank eval"),
      ignored("do-eval", "--eval-strategy decides"),
      // Parallel training.
      ignored("ddp-*", mpi),
      only("sequence-parallel-size", {"1"}, "a sequence stays on one rank", layout),
      only("context-parallel-size", {"1"}, "a sequence stays on one rank", layout),
      only("tensor-model-parallel-size", {"1"}, "a layer stays on one rank", layout),
      only("pipeline-model-parallel-size", {"1"}, "all layers stay on one rank", layout),
      refused("fsdp*", sharding),
      refused("zero-hpz-partition-size", sharding),
      refused("deepspeed-*", sharding),
      refused("use-flash-ckpt", "checkpoints are written by all ranks at once; leave it out"),
      only("torch-compile", {"false"}, "it is off here too",
           "leave it out: kernels are compiled in"),
      only("local-rank", {"-1"}, "ranks are MPI's", "mpirun -n N vlrerank train ..."),
      refused("ray-*", "mpirun -n N vlrerank train ..."),
      only("use-ray", {"false"}, "ranks are MPI's", "mpirun -n N vlrerank train ..."),
  };
}

long number_or(char const* word, long otherwise) {
  if (word == nullptr) return otherwise;
  long value = 0;
  auto const end = word + std::char_traits<char>::length(word);
  auto const [stop, failure] = std::from_chars(word, end, value);
  return failure == std::errc() && stop == end && value > 0 ? value : otherwise;
}

}  // namespace

std::vector<ForeignName> const& foreign_names() {
  static std::vector<ForeignName> const names = make_names();
  return names;
}

ForeignName const* find_foreign(std::string const& name) {
  for (auto const& row : foreign_names())
    if (matches(row.name, name)) return &row;
  return nullptr;
}

bool is_harmless(ForeignName const& row, std::string const& value) {
  auto const word = boolean_word(value);
  return std::any_of(row.harmless.begin(), row.harmless.end(), [&](std::string const& pattern) {
    return matches(pattern, value) || (!word.empty() && pattern == word);
  });
}

std::vector<std::string> launch_notices(std::string const& command,
                                        Environment const& environment) {
  if (!environment) return {};
  for (auto const* started : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"})
    if (environment(started) != nullptr) return {};
  auto const* per_node = environment("NPROC_PER_NODE");
  auto const* nodes = environment("NNODES");
  auto const* world = environment("WORLD_SIZE");
  bool const torchrun = environment("RANK") != nullptr && world != nullptr;
  auto const* master = environment("MASTER_ADDR");
  if (per_node == nullptr && nodes == nullptr && master == nullptr && !torchrun) return {};

  std::string seen;
  auto const show = [&](char const* name) {
    if (auto const* value = environment(name))
      seen += text(seen.empty() ? "" : " ", name, "=", value);
  };
  for (auto const* name : {"NPROC_PER_NODE", "NNODES", "MASTER_ADDR", "RANK", "WORLD_SIZE"})
    show(name);
  auto const node_count = number_or(nodes, 1);
  auto const ranks =
      per_node == nullptr && torchrun ? number_or(world, 1) : number_or(per_node, 1) * node_count;
  auto line = text(seen, torchrun ? ": torchrun does not start the ranks here, MPI does"
                                  : ": not read here, ranks are started by MPI");
  line += text("; the same is `mpirun -n ", ranks);
  if (node_count > 1)
    line += text(" --map-by ppr:", std::max(1L, ranks / node_count), ":node --hostfile HOSTS");
  line += text(" vlrerank ", command, " ...`");
  if (node_count > 1)
    line +=
        text(" or `srun --nodes ", node_count, " --ntasks ", ranks, " vlrerank ", command, " ...`");
  if (torchrun && number_or(world, 1) > 1) line += "; as started now, every process trains alone";
  return {line};
}

}  // namespace vlrerank
