// config/table.cpp -- the commands, and the option table of each.
#include "config/table.hpp"

#include "config/nearest.hpp"
#include "config/rows.hpp"
#include "core/error.hpp"

namespace vlrerank {
namespace {

Rows joined(std::vector<Rows> const& parts) {
  Rows all;
  for (auto const& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Rows training_rows(Settings& s) {
  return joined({model_rows(s), training_data_rows(s), prompt_rows(s), row_rows(s), tuning_rows(s),
                 loss_rows(s), optimizer_rows(s), batch_rows(s), run_rows(s), evaluation_rows(s),
                 parallel_rows(s)});
}

Rows check_table(Settings& s) {
  return joined(
      {grouped("Check",
               {
                   Option("dump", &s.check.dump, "print what became of lines FIRST:LAST, as JSON")
                       .matching("[0-9]+(:[0-9]+)?|", "two line numbers, as 1:20"),
                   Option("dump-positions", &s.check.dump_positions,
                          "with --dump: the 3-D position of every token"),
                   Option("report", &s.check.report, "file that takes every problem found"),
               }),
       training_rows(s)});
}

Rows prepare_table(Settings& s) {
  auto& d = s.data;
  auto const shards = grouped(
      "Shards",
      {
          dataset_row(s),
          Option("output", &s.output, "directory of the shards").also({"output-dir"}).needed(),
          Option("overwrite", &s.run.overwrite, "make the shards again although they are there"),
          Option("shard-name", &d.shard_name, "first part of the shards' file names")
              .matching("[A-Za-z0-9._-]+", "letters, digits, dots, dashes"),
          Option("shard-mib", &d.shard_mib, "size at which a new shard begins, MiB")
              .between(1, 65536),
          Option("progress", &s.run.progress, "bar on a terminal, lines elsewhere")
              .choose({"auto", "on", "off"}),
      });
  auto const model = grouped(
      "Model", {model_row(s)});  // for its tokenizer and picture limits: no weights are read
  return joined({model, shards, prompt_rows(s), row_rows(s)});
}

Rows scoring_rows(Settings& s) {
  return grouped(
      "Speed",
      {
          Option("per-device-eval-batch-size", &s.batch.per_device_eval_batch_size,
                 "rows of a rank at once; changes no result")
              .between(1, 1 << 20)
              .also({"eval-batch-size", "batch-size"}),
          Option("micro-batch-tokens", &s.batch.micro_batch_tokens,
                 "tokens computed at once; changes no result")
              .between(32, 1 << 30)
              .defaulting("what fits"),
          Option("share-prefix", &s.batch.share_prefix, "compute a row's common prefix once"),
          Option("progress", &s.run.progress, "bar on a terminal, lines elsewhere")
              .choose({"auto", "on", "off"}),
      });
}

Rows eval_table(Settings& s) {
  auto const loss = loss_rows(s);
  auto const data = grouped(
      "Evaluation",
      {
          dataset_row(s).also({"val-dataset"}),
          cache_row(s).defaulting(".vlrerank-cache"),
          cutoffs_row(s),
          bootstrap_row(s),
          Option("json", &s.eval.json, "print the metrics as one JSON object last"),
          Option("per-query", &s.eval.per_query, "file that takes the metrics of every row"),
          Option("seed", &s.run.seed, "decides the resamples").at_least(0),
      });
  return joined({model_rows(s), data, prompt_rows(s), row_rows(s), loss, scoring_rows(s)});
}

Rows score_table(Settings& s) {
  auto const data = grouped(
      "Rows to score",
      {
          Option("dataset", &s.score.input, "JSONL file; - is standard input")
              .also({"input", "val-dataset"}),
          Option("top", &s.score.top, "print the best documents of a row only; 0: all").at_least(0),
      });
  return joined({model_rows(s), data, prompt_rows(s), row_rows(s), scoring_rows(s)});
}

Rows new_model_table(Settings& s) {
  auto& n = s.new_model;
  Rows const what = grouped(
      "New model",
      {
          Option("output", &n.output, "directory of the new model").also({"output-dir"}).needed(),
          Option("size", &n.size, "numbers that the options below do not give")
              .choose({"tiny", "small", "2b", "8b"}),
          Option("tokenizer", &n.tokenizer, "tokenizer.json, or the directory that holds it"),
          Option("seed", &s.run.seed, "decides the weights").at_least(0),
          Option("dtype", &s.model.dtype, "number format of the weights")
              .choose({"auto", "float32", "bfloat16", "float16"}),
          Option("overwrite", &s.run.overwrite, "replace a model that is there"),
      });
  auto const sized = [](char const* name, std::int32_t* field, char const* help) {
    return Option(name, field, help).between(1, 1 << 20).defaulting("as --size");
  };
  Rows const shape = grouped(
      "Shape",
      {
          sized("hidden-size", &n.hidden_size, "width of the text decoder"),
          sized("intermediate-size", &n.intermediate_size, "width inside its feed-forward part"),
          sized("num-hidden-layers", &n.num_hidden_layers, "layers of the text decoder"),
          sized("num-attention-heads", &n.num_attention_heads, "query heads"),
          sized("num-key-value-heads", &n.num_key_value_heads, "key and value heads"),
          sized("head-dim", &n.head_dim, "width of a head"),
          sized("vocab-size", &n.vocab_size, "rows of the token embedding"),
          sized("vision-depth", &n.vision_depth, "layers of the vision tower"),
          sized("vision-hidden-size", &n.vision_hidden_size, "width of the vision tower"),
          sized("vision-num-heads", &n.vision_num_heads, "heads of the vision tower"),
          sized("vision-intermediate-size", &n.vision_intermediate_size,
                "width inside its feed-forward part"),
          Option("initializer-range", &n.initializer_range, "standard deviation of the weights")
              .between(0, 10),
          Option("embedding-range", &n.embedding_range, "standard deviation of the token embedding")
              .between(0, 10),
          Option("tie-word-embeddings", &n.tie_word_embeddings,
                 "the head uses the token embedding's rows"),
      });
  return joined({what, shape});
}

Rows inspect_table(Settings& s) {
  return grouped("Inspect",
                 {
                     Option("input", &s.inputs, "shard sets, checkpoints, adapters or models")
                         .needed()
                         .at_positions(),
                 });
}

}  // namespace

std::vector<Command> const& commands() {
  static std::vector<Command> const all = {
      {"check", "read data and a model's headers; report every problem, cuts, steps and memory",
       "vlrerank check --model Qwen3-VL-Reranker-2B --dataset train.jsonl", check_table},
      {"prepare", "make HDF5 shards of JSON lines: tokens, and pictures decoded and resized",
       "vlrerank prepare --model Qwen3-VL-Reranker-2B --dataset train.jsonl --output shards",
       prepare_table},
      {"train", "fine-tune a reranker",
       "mpirun -n 2 vlrerank train --model Qwen3-VL-Reranker-2B --dataset t.jsonl --output-dir "
       "runs/a",
       training_rows},
      {"eval", "ranking metrics of a model over whole lists",
       "vlrerank eval --model Qwen3-VL-Reranker-2B --adapter runs/a/best --dataset dev.jsonl",
       eval_table},
      {"score", "scores of query-document rows, in their order",
       "vlrerank score --model Qwen3-VL-Reranker-2B --adapter runs/a/best --dataset pairs.jsonl",
       score_table},
      {"new-model", "a random model of a chosen size, for tests and demos",
       "vlrerank new-model --size tiny --tokenizer Qwen3-VL-Reranker-2B --output tiny",
       new_model_table},
      {"inspect", "say what a shard set, a checkpoint, an adapter or a model holds",
       "vlrerank inspect runs/a/best", inspect_table},
  };
  return all;
}

Command const& find_command(std::string const& name) {
  std::vector<std::string> names;
  for (auto const& command : commands()) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  auto const near = nearest(name, names);
  throw Error(Exit::usage, text("there is no command `", name, "`"),
              near.empty() ? "run `vlrerank --help` for the list of commands"
                           : text("did you mean `vlrerank ", near, "`?"),
              VLR_WHERE);
}

}  // namespace vlrerank
