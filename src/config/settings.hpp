// config/settings.hpp -- every setting of every command, as plain structs with defaults.
// Each room takes only its own struct; app/ alone sees the whole Settings. Names on the command
// line, help and limits are rows of the tables in config/*_rows.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vlrerank {

struct ModelSettings {
  std::string model;    // --model: directory or hub id found in a local cache
  std::string adapter;  // --adapter (alias adapters): PEFT directory to start from or to score with
  std::string dtype = "auto";      // --dtype (alias torch-dtype): auto|float32|bfloat16|float16
  std::string device = "auto";     // --device: auto|cpu|cuda
  std::string attention = "auto";  // --attention (alias attn-impl): auto|flash|math ("flash_attn",
                                   // "sdpa", "eager" accepted)
};

struct DataSettings {
  std::vector<std::string>
      dataset;  // --dataset, repeatable: JSONL or shard directories, path#count
  std::vector<std::string> val_dataset;  // --val-dataset
  double split_dataset_ratio = 0;        // --split-dataset-ratio
  std::int32_t max_length = 4096;
  std::string truncation = "document";  // document|script
  bool parse_special_tokens = false;
  std::string instruction;  // --instruction: "" the model's default
  std::int32_t image_min_tokens = 4;
  std::int32_t image_max_tokens = 1280;
  bool ignore_exif = false;
  std::string image_root;
  std::string image_tag = "<image>";
  std::string video_tag = "<video>";
  bool keep_duplicates = false;
  std::int64_t max_bad_rows = -1;  // -1: the larger of 10 and 0.1 %
  bool strict = false;
  std::int32_t max_positives = 1;  // env MAX_POSITIVE_SAMPLES
  std::int32_t max_negatives = 7;  // env MAX_NEGATIVE_SAMPLES
  bool shuffle = true;             // --shuffle (aliases dataset-shuffle, train-dataloader-shuffle)
  std::string shard_name = "part";
  std::int64_t shard_mib = 512;
  std::string cache_dir;  // where train keeps shards it prepares itself; "":
                          // <output-dir>/../.vlrerank-cache
};

struct LoraSettings {
  std::int32_t rank = 8;
  double alpha = 32;
  double dropout = 0.05;
  std::vector<std::string> targets = {
      "all-linear"};    // --target-modules: all-linear, suffixes, or one regex
  bool rslora = false;  // --use-rslora
};

struct TrainableSettings {
  std::string tuner = "lora";  // --tuner (aliases train-type, tuner-type): lora|full
  bool freeze_llm = false;
  bool freeze_vit = true;
  bool freeze_aligner = true;
  bool freeze_embedding = false;  // the token embedding, and lm_head when tied to it; full only
};

struct LossSettings {
  std::string kind =
      "pointwise";  // --loss (alias loss-type): pointwise|listwise; ms-swift's names accepted
  double temperature = 1.0;         // --temperature (env LISTWISE_RERANKER_TEMPERATURE)
  std::int32_t min_group_size = 2;  // --min-group-size (env LISTWISE_RERANKER_MIN_GROUP_SIZE)
  double pos_weight = 1.0;
  std::string reduction = "mean";  // --loss-reduction: mean|sum-of-means
};

struct OptimizerSettings {
  double learning_rate = -1;  // -1: 1e-4 LoRA, 1e-5 full
  double vit_lr = -1;         // -1: as learning_rate
  double aligner_lr = -1;
  double weight_decay = 0.1;
  double beta1 = 0.9;     // --adam-beta1
  double beta2 = 0.95;    // --adam-beta2
  double epsilon = 1e-8;  // --adam-epsilon
  double max_grad_norm = 1.0;
};

struct ScheduleSettings {
  std::string kind =
      "cosine";  // --lr-scheduler-type: cosine|linear|constant|constant_with_warmup|polynomial|
                 // inverse_sqrt|cosine_with_min_lr|warmup_stable_decay
  double warmup_ratio = 0;
  std::int64_t warmup_steps = 0;
  double min_lr_rate =
      -1;  // --min-lr-rate: min_lr as a share of the learning rate; resolve() turns it into min_lr
  double min_lr = 0;  // --min-lr (absolute), used by cosine_with_min_lr and warmup_stable_decay
  std::int64_t decay_steps =
      0;               // --lr-decay-steps, warmup_stable_decay's last part; 0: 10 % of the steps
  double power = 1.0;  // --lr-power, polynomial
};

struct BatchSettings {
  std::int32_t per_device_train_batch_size = 1;  // rows
  std::int32_t per_device_eval_batch_size = 1;
  std::int32_t gradient_accumulation_steps = 0;  // 0: ms-swift's ceil(16 / batch / ranks)
  std::int32_t global_batch_size = 0;   // rows of an optimizer step; 0: the product of the above
  std::int32_t micro_batch_tokens = 0;  // 0: automatic
  bool share_prefix = true;             // --share-prefix on|off
  bool drop_last = false;               // --dataloader-drop-last
};

struct RunSettings {
  std::string output_dir = "output";
  bool overwrite = false;
  std::string resume = "never";  // --resume auto|PATH|never (alias resume-from-checkpoint PATH)
  double epochs = 3;             // --num-train-epochs
  std::int64_t max_steps = -1;
  std::int64_t save_steps = 500;
  std::string save_strategy = "steps";  // steps|epoch|no
  std::int64_t save_total_limit = 0;    // 0: keep all
  bool save_only_model = false;
  std::int64_t eval_steps = 0;         // 0: as save_steps
  std::string eval_strategy = "auto";  // auto (steps when there is a validation set)|steps|epoch|no
  bool eval_on_start = true;
  std::int64_t logging_steps = 5;
  std::string metric_for_best_model = "mrr";
  std::uint64_t seed = 42;
  std::int64_t seed_data = -1;      // --data-seed; -1: as seed
  std::string progress = "auto";    // auto|on|off
  std::int32_t max_bad_steps = 10;  // steps in a row whose loss or gradient is not finite
  std::int32_t dataloader_num_workers = 1;
};

struct ParallelSettings {
  std::string zero = "auto";  // --zero (alias deepspeed zero0..3): auto|0|1|2|3
  std::string recompute =
      "auto";  // --recompute none|cheap|mlp|full|auto; --gradient-checkpointing true = full
};

struct EvalSettings {
  std::vector<std::int32_t> at = {1, 3, 5, 10};  // --at: cut-offs of ndcg@k and recall@k
  bool json = false;
  std::string per_query;          // file
  std::int32_t bootstrap = 1000;  // resamples of the confidence interval; 0: none
};

struct ScoreSettings {
  std::string input = "-";  // --dataset or standard input
  std::int32_t top = 0;
};

struct CheckSettings {
  std::string dump;  // FIRST:LAST
  bool dump_positions = false;
  std::string report;  // file for all problems
};

struct NewModelSettings {
  std::string output;
  std::string size = "tiny";  // tiny|small|2b|8b, single numbers below override
  std::string tokenizer;      // directory or tokenizer.json to copy
  std::int32_t hidden_size = 0;
  std::int32_t intermediate_size = 0;
  std::int32_t num_hidden_layers = 0;
  std::int32_t num_attention_heads = 0;
  std::int32_t num_key_value_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t vision_depth = 0;
  std::int32_t vision_hidden_size = 0;
  std::int32_t vision_num_heads = 0;
  std::int32_t vision_intermediate_size = 0;
  std::int32_t vocab_size = 0;
  double initializer_range = 0.02;
  double embedding_range = 0.02;  // std of the token embedding
  bool tie_word_embeddings = false;
};

/// All settings; a command's table names those that it reads.
struct Settings {
  ModelSettings model;
  DataSettings data;
  LoraSettings lora;
  TrainableSettings trainable;
  LossSettings loss;
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  BatchSettings batch;
  RunSettings run;
  ParallelSettings parallel;
  EvalSettings eval;
  ScoreSettings score;
  CheckSettings check;
  NewModelSettings new_model;
  std::string output;               // prepare --output, merge --output, ...
  std::vector<std::string> inputs;  // positional arguments of inspect, report, watch
};

}  // namespace vlrerank
