// config/data_rows.cpp -- options about the model, the data and the prompt.
// A row names the option, the field (whose initializer is the default), the help and the limits;
// other names are those of ms-swift 3.x and 4.x where they mean the same.
#include "config/rows.hpp"

namespace vlrerank {

Rows grouped(std::string const& group, Rows rows) {
  for (auto& row : rows) row.group = group;
  return rows;
}

Option model_row(Settings& s) {
  return Option("model", &s.model.model, "model directory, or hub id found in a local cache")
      .also({"model-id-or-path", "model-name-or-path"})
      .needed();
}

Rows model_rows(Settings& s) {
  ValueNames const on_cpu = {{"true", "cpu"}, {"false", ""}};
  return grouped(
      "Model",
      {
          model_row(s),
          Option("adapter", &s.model.adapter, "PEFT adapter directory to start from or score with")
              .also({"adapters", "ckpt-dir"}),
          Option("dtype", &s.model.dtype,
                 "number format of the weights; the CPU computes in float32")
              .choose({"auto", "float32", "bfloat16", "float16"})
              .reading({{"fp32", "float32"},
                        {"bf16", "bfloat16"},
                        {"fp16", "float16"},
                        {"float", "float32"},
                        {"half", "float16"}})
              .also({"torch-dtype",
                     {"bf16", {{"true", "bfloat16"}, {"false", ""}}, "", "--dtype bfloat16"},
                     {"fp16", {{"true", "float16"}, {"false", ""}}, "", "--dtype float16"}}),
          Option("device", &s.model.device, "where to compute; auto takes CUDA when it can")
              .choose({"auto", "cpu", "cuda"})
              .also({{"use-cpu", on_cpu, "", "--device cpu"},
                     {"no-cuda", on_cpu, "", "--device cpu"}}),
          Option("attention", &s.model.attention, "attention kernels; math is the plain definition")
              .choose({"auto", "flash", "math"})
              .reading({{"flash_attn", "flash"},
                        {"flash_attention_2", "flash"},
                        {"flash_attention_3", "flash"},
                        {"sdpa", "auto"},
                        {"eager", "math"}})
              .also({"attn-impl", "attn-implementation"}),
      });
}

Rows prompt_rows(Settings& s) {
  auto& d = s.data;
  return grouped(
      "Prompt and pictures",
      {
          Option("max-length", &d.max_length, "tokens of one query-document pair")
              .between(32, 262144),
          Option("truncation", &d.truncation,
                 "what is cut from longer pairs: the document's text, or as Qwen's script does")
              .choose({"document", "script"}),
          Option("instruction", &d.instruction, "instruction of rows without their own")
              .defaulting("the model's"),
          Option("parse-special-tokens", &d.parse_special_tokens,
                 "read special strings inside user text as special tokens"),
          Option("image-min-tokens", &d.image_min_tokens, "smaller pictures are enlarged to this")
              .between(1, 16384)
              .from_environment("IMAGE_MIN_TOKEN_NUM")
              .from_environment("MIN_PIXELS", 1024)
              .also({"image-min-token-num", Alias::pixels("min-pixels")}),
          Option("image-max-tokens", &d.image_max_tokens, "larger pictures are reduced to this")
              .between(1, 16384)
              .from_environment("IMAGE_MAX_TOKEN_NUM")
              .from_environment("MAX_PIXELS", 1024)
              .also({"image-max-token-num", Alias::pixels("max-pixels")}),
          Option("ignore-exif", &d.ignore_exif, "do not turn pictures as their EXIF data say"),
          Option("image-root", &d.image_root, "folder that relative media paths start from")
              .defaulting("the data file's folder")
              .from_environment("ROOT_IMAGE_DIR"),
          Option("image-tag", &d.image_tag, "placeholder of a picture inside text"),
          Option("video-tag", &d.video_tag, "placeholder of a video inside text"),
      });
}

Rows row_rows(Settings& s) {
  auto& d = s.data;
  return grouped(
      "Rows", {
                  Option("keep-duplicates", &d.keep_duplicates,
                         "keep equal documents of a row, and positives also listed as negatives"),
                  Option("max-bad-rows", &d.max_bad_rows, "unusable rows after which the job ends")
                      .at_least(0)
                      .defaulting("the larger of 10 rows and 0.1 %"),
                  Option("strict", &d.strict, "end at the first unusable row"),
              });
}

Option dataset_row(Settings& s) {
  return Option("dataset", &s.data.dataset,
                "JSONL files or shard directories; path#count takes so many rows")
      .also({"datasets"})
      .needed();
}

Option cache_row(Settings& s) {
  return Option("cache-dir", &s.data.cache_dir,
                "where shards that a command makes itself are kept");
}

Rows training_data_rows(Settings& s) {
  auto& d = s.data;
  return grouped(
      "Data", {
                  dataset_row(s),
                  Option("val-dataset", &d.val_dataset, "rows to evaluate on while training")
                      .also({"val-datasets"}),
                  Option("split-dataset-ratio", &d.split_dataset_ratio,
                         "share of --dataset that is kept for evaluation")
                      .between(0, 0.99),
                  Option("max-positives", &d.max_positives, "positives of a row in one step")
                      .between(1, 1 << 20)
                      .from_environment("MAX_POSITIVE_SAMPLES"),
                  Option("max-negatives", &d.max_negatives, "negatives of a row in one step")
                      .between(0, 1 << 20)
                      .from_environment("MAX_NEGATIVE_SAMPLES"),
                  Option("shuffle", &d.shuffle, "a new order of rows each epoch, from --data-seed")
                      .also({"dataset-shuffle", "train-dataloader-shuffle"}),
                  cache_row(s).defaulting(".vlrerank-cache beside the run directory"),
                  Option("dataloader-num-workers", &s.run.dataloader_num_workers,
                         "threads of a rank that read ahead")
                      .between(0, 256),
              });
}

}  // namespace vlrerank
