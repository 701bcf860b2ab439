// config/training_rows.cpp -- options about what is trained, how, and how long.
// A row names the option, the field (whose initializer is the default), the help and the limits;
// other names are those of ms-swift 3.x and 4.x where they mean the same.
#include "config/rows.hpp"

namespace vlrerank {

Rows tuning_rows(Settings& s) {
  return grouped(
      "What is trained",
      {
          Option("tuner", &s.trainable.tuner, "low-rank adapters, or the weights themselves")
              .choose({"lora", "full"})
              .also({"train-type", "tuner-type", "sft-type"}),
          Option("lora-rank", &s.lora.rank, "rank r of each LoRA pair")
              .between(1, 4096)
              .also({"lora-r"}),
          Option("lora-alpha", &s.lora.alpha, "LoRA scale is alpha / rank").between(0, 65536),
          Option("lora-dropout", &s.lora.dropout, "dropout before A, probability").between(0, 0.99),
          Option("target-modules", &s.lora.targets,
                 "all-linear, names or suffixes of linear layers, or one regular expression")
              .separated()
              .also({"lora-target-modules", "target-regex"}),
          Option("use-rslora", &s.lora.rslora, "LoRA scale is alpha / sqrt(rank)").also({"rslora"}),
          Option("freeze-llm", &s.trainable.freeze_llm, "leave the text decoder as it is"),
          Option("freeze-vit", &s.trainable.freeze_vit, "leave the vision tower as it is"),
          Option("freeze-aligner", &s.trainable.freeze_aligner,
                 "leave the merger between vision tower and decoder as it is"),
          Option("freeze-embedding", &s.trainable.freeze_embedding,
                 "with --tuner full: leave the token embedding (and a head tied to it) as it is"),
      });
}

Rows loss_rows(Settings& s) {
  auto& l = s.loss;
  return grouped(
      "Loss",
      {
          Option("loss", &l.kind, "one yes-no decision a document, or a softmax over a row's list")
              .choose({"pointwise", "listwise"})
              .reading({{"pointwise_reranker", "pointwise"},
                        {"generative_reranker", "pointwise"},
                        {"reranker", "pointwise"},
                        {"listwise_reranker", "listwise"},
                        {"listwise_generative_reranker", "listwise"},
                        {"generative_listwise_reranker", "listwise"}})
              .also({"loss-type"}),
          Option("temperature", &l.temperature, "listwise: scores are divided by this")
              .between(1e-6, 1e6)
              .from_environment("LISTWISE_RERANKER_TEMPERATURE"),
          Option("min-group-size", &l.min_group_size, "listwise: smaller lists give no loss")
              .between(1, 1 << 20)
              .from_environment("LISTWISE_RERANKER_MIN_GROUP_SIZE"),
          Option("pos-weight", &l.pos_weight, "pointwise: weight of positives").between(1e-6, 1e6),
          Option("loss-reduction", &l.reduction,
                 "mean over the step's documents, or ms-swift's sum of micro-batch means")
              .choose({"mean", "sum-of-means"}),
      });
}

Rows optimizer_rows(Settings& s) {
  auto& o = s.optimizer;
  auto& l = s.schedule;
  return grouped(
      "Optimizer and schedule",
      {
          Option("learning-rate", &o.learning_rate, "peak learning rate")
              .between(0, 10)
              .defaulting("1e-4 for LoRA, 1e-5 for full"),
          Option("vit-lr", &o.vit_lr, "peak learning rate of the vision tower")
              .between(0, 10)
              .defaulting("--learning-rate"),
          Option("aligner-lr", &o.aligner_lr, "peak learning rate of the merger")
              .between(0, 10)
              .defaulting("--learning-rate"),
          Option("weight-decay", &o.weight_decay, "decoupled weight decay").between(0, 10),
          Option("adam-beta1", &o.beta1, "decay of the first moment").between(0, 0.999999),
          Option("adam-beta2", &o.beta2, "decay of the second moment").between(0, 0.999999999),
          Option("adam-epsilon", &o.epsilon, "added to the root of the second moment")
              .between(0, 1),
          Option("max-grad-norm", &o.max_grad_norm, "limit of the gradient's norm; 0 is off")
              .at_least(0),
          Option("lr-scheduler-type", &l.kind, "course of the learning rate")
              .choose({"cosine", "linear", "constant", "constant_with_warmup", "polynomial",
                       "inverse_sqrt", "cosine_with_min_lr", "warmup_stable_decay"})
              .also({"lr-scheduler"}),
          Option("warmup-ratio", &l.warmup_ratio, "share of all steps with a rising rate")
              .between(0, 0.999999),
          Option("warmup-steps", &l.warmup_steps, "steps with a rising rate, instead of a ratio")
              .at_least(0),
          Option("min-lr", &l.min_lr, "last rate of cosine_with_min_lr and warmup_stable_decay")
              .between(0, 10),
          Option("min-lr-rate", &l.min_lr_rate, "--min-lr as a share of --learning-rate")
              .between(0, 1)
              .defaulting("none: --min-lr decides"),
          Option("lr-decay-steps", &l.decay_steps, "steps of warmup_stable_decay's last part")
              .at_least(0)
              .defaulting("10 % of the steps"),
          Option("lr-power", &l.power, "exponent of polynomial").between(0, 100),
      });
}

Rows batch_rows(Settings& s) {
  auto& b = s.batch;
  return grouped(
      "Batch",
      {
          Option("per-device-train-batch-size", &b.per_device_train_batch_size,
                 "rows of a rank before the next accumulation")
              .between(1, 1 << 20)
              .also({"train-batch-size", "batch-size"}),
          Option("per-device-eval-batch-size", &b.per_device_eval_batch_size,
                 "rows of a rank at once in evaluation; changes no result")
              .between(1, 1 << 20)
              .also({"eval-batch-size"}),
          Option("gradient-accumulation-steps", &b.gradient_accumulation_steps,
                 "batches of an optimizer step")
              .between(1, 1 << 20)
              .defaulting("16 / batch size / ranks, rounded up"),
          Option("global-batch-size", &b.global_batch_size,
                 "rows of an optimizer step over all ranks, instead of the above")
              .between(1, 1 << 30)
              .defaulting("batch size x accumulation x ranks"),
          Option("micro-batch-tokens", &b.micro_batch_tokens,
                 "tokens computed at once; changes memory and speed, no result")
              .between(32, 1 << 30)
              .defaulting("what fits"),
          Option("share-prefix", &b.share_prefix, "compute a row's common prefix once"),
          Option("dataloader-drop-last", &b.drop_last, "leave out an epoch's last, shorter step")
              .also({"drop-last"}),
      });
}

Rows run_rows(Settings& s) {
  auto& r = s.run;
  return grouped(
      "Run",
      {
          Option("output-dir", &r.output_dir, "run directory: record, log and checkpoints"),
          Option("overwrite", &r.overwrite, "delete what an earlier run left in --output-dir")
              .also({"overwrite-output-dir"}),
          Option("resume", &r.resume,
                 "go on from a checkpoint: auto takes the run's last, or its path")
              .also({{"resume-from-checkpoint", {{"true", "auto"}, {"false", "never"}}}})
              .defaulting("never"),
          Option("num-train-epochs", &r.epochs, "passes over the data")
              .at_least(1e-6)
              .also({"epochs"}),
          Option("max-steps", &r.max_steps, "optimizer steps, instead of epochs")
              .at_least(1)
              .defaulting("as the epochs give"),
          Option("save-strategy", &r.save_strategy, "when checkpoints are written")
              .choose({"steps", "epoch", "no"}),
          Option("save-steps", &r.save_steps, "steps between checkpoints").at_least(1),
          Option("save-total-limit", &r.save_total_limit,
                 "checkpoints kept beside the best; 0 keeps all")
              .at_least(0),
          Option("save-only-model", &r.save_only_model,
                 "leave out what a resume needs: smaller checkpoints"),
          Option("logging-steps", &r.logging_steps, "steps between log rows").at_least(1),
          Option("progress", &r.progress, "bar on a terminal, lines elsewhere")
              .choose({"auto", "on", "off"})
              .also({{"disable-tqdm", {{"true", "off"}, {"false", "auto"}}, "", "--progress off"}}),
          Option("max-bad-steps", &r.max_bad_steps,
                 "steps in a row with a loss or gradient that is not finite, before the run ends")
              .at_least(0),
          Option("seed", &r.seed, "decides initial adapters, dropout and choices").at_least(0),
          Option("data-seed", &r.seed_data, "decides the order of rows and the choice of negatives")
              .at_least(0)
              .defaulting("--seed"),
      });
}

Option cutoffs_row(Settings& s) {
  return Option("at", &s.eval.at, "cut-offs k of ndcg@k and recall@k")
      .between(1, 1 << 20)
      .separated();
}

Option bootstrap_row(Settings& s) {
  return Option("bootstrap", &s.eval.bootstrap, "resamples of the confidence interval; 0: none")
      .between(0, 1000000);
}

Rows evaluation_rows(Settings& s) {
  auto& r = s.run;
  return grouped(
      "Evaluation",
      {
          Option("eval-strategy", &r.eval_strategy,
                 "when to evaluate; auto: when there are rows for it")
              .choose({"auto", "steps", "epoch", "no"})
              .also({"evaluation-strategy"}),
          Option("eval-steps", &r.eval_steps, "steps between evaluations")
              .at_least(1)
              .defaulting("--save-steps"),
          Option("eval-on-start", &r.eval_on_start, "evaluate the untouched model first"),
          Option("metric-for-best-model", &r.metric_for_best_model,
                 "decides which checkpoint is best")
              .reading({{"eval_mrr", "mrr"},
                        {"eval_ndcg", "ndcg"},
                        {"eval_acc", "acc"},
                        {"eval_loss", "loss"},
                        {"accuracy", "acc"}})
              .matching("mrr|ndcg|map|auc|acc|loss|(ndcg|recall)@[1-9][0-9]{0,6}",
                        "mrr, ndcg, ndcg@k, recall@k, map, auc, acc or loss"),
          cutoffs_row(s),
          bootstrap_row(s),
      });
}

Rows parallel_rows(Settings& s) {
  auto& p = s.parallel;
  return grouped(
      "Parallel training",
      {
          Option("zero", &p.zero,
                 "what ranks divide: 1 optimizer state, 2 gradients, 3 weights too")
              .choose({"auto", "0", "1", "2", "3"})
              .reading({{"zero0", "0"}, {"zero1", "1"}, {"zero2", "2"}, {"zero3", "3"}})
              .also({{"deepspeed",
                      {{"zero0", "0"}, {"zero1", "1"}, {"zero2", "2"}, {"zero3", "3"}},
                      "1 divides the optimizer state over the ranks, 2 the gradients too, 3 the "
                      "weights too; DeepSpeed itself is not used, and results do not depend on it",
                      "--zero 0, 1, 2, 3 or auto: there is no DeepSpeed configuration file and no "
                      "offload"}}),
          Option("recompute", &p.recompute, "what the backward pass computes again to save memory")
              .choose({"auto", "none", "cheap", "mlp", "full"})
              .also(
                  {{"gradient-checkpointing",
                    {{"true", "full"}, {"false", "none"}},
                    "every layer is computed again in the backward pass, or none; auto decides by "
                    "the memory there is",
                    "--recompute none, cheap, mlp, full or auto"}}),
      });
}

}  // namespace vlrerank
