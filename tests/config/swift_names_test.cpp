// tests/config/swift_names_test.cpp -- command lines that people have for ms-swift 3.x and 4.x.
#include <gtest/gtest.h>

#include "config/support.hpp"

namespace vlrerank {
namespace {

TEST(SwiftNames, TheArticlesCommandLineParses) {
  auto const parsed = parse(
      "train",
      "--model M --task_type generative_reranker --loss_type generative_reranker --train_type lora "
      "--lora_rank 8 --lora_alpha 32 --learning_rate 5e-6 --target_modules all-linear --dataset D "
      "--attn_impl flash_attn --padding_free true --torch_dtype bfloat16 --output_dir output "
      "--save_steps 500 --eval_steps 500 --num_train_epochs 3 --max_length 4096 "
      "--per_device_train_batch_size 1 --per_device_eval_batch_size 1 "
      "--gradient_accumulation_steps 8 --dataloader_num_workers 4 --deepspeed zero2 "
      "--gradient_checkpointing true --warmup_ratio 0.05 --load_from_cache_file true "
      "--dataset_num_proc 4");
  auto const& s = parsed.settings;

  EXPECT_EQ(s.loss.kind, "pointwise");
  EXPECT_EQ(s.trainable.tuner, "lora");
  EXPECT_DOUBLE_EQ(s.optimizer.learning_rate, 5e-6);
  EXPECT_EQ(s.model.attention, "flash");
  EXPECT_EQ(s.model.dtype, "bfloat16");
  EXPECT_EQ(s.parallel.zero, "2");
  EXPECT_EQ(s.parallel.recompute, "full");
  EXPECT_EQ(s.batch.gradient_accumulation_steps, 8);
  EXPECT_DOUBLE_EQ(s.schedule.warmup_ratio, 0.05);
  for (auto const* line : {"--deepspeed zero2 is read as --zero 2: 1 divides the optimizer state",
                           "--padding-free true is ignored", "--dataset-num-proc 4 is ignored",
                           "--load-from-cache-file true is ignored",
                           "--gradient-checkpointing true is read as --recompute full"})
    EXPECT_TRUE(contains(notices(parsed), line)) << line << "\n" << notices(parsed);
}

TEST(SwiftNames, TheGoldenRunsCommandLineParses) {
  auto const parsed = parse(
      "train",
      "--model model --model_type qwen3_vl_reranker --task_type generative_reranker --use_cpu true "
      "--torch_dtype float32 --fp16 false --bf16 false --attn_impl sdpa --dataset train.jsonl "
      "--val_dataset dev.jsonl --split_dataset_ratio 0 --load_from_cache_file false --strict true "
      "--max_length 4096 --dataset_shuffle false --val_dataset_shuffle false "
      "--train_dataloader_shuffle false --dataloader_num_workers 0 --seed 42 --data_seed 42 "
      "--per_device_train_batch_size 1 --per_device_eval_batch_size 1 --gradient_checkpointing "
      "false "
      "--warmup_ratio 0.1 --lr_scheduler_type cosine --weight_decay 0.1 --adam_beta1 0.9 "
      "--adam_beta2 0.95 --max_grad_norm 1.0 --logging_steps 1 --logging_first_step true "
      "--report_to none --check_model false --add_version false --tuner_type lora --lora_rank 8 "
      "--lora_alpha 32 --lora_dropout 0 --target_modules all-linear --adapters adapter_init "
      "--loss_type pointwise_reranker --learning_rate 1e-3 --gradient_accumulation_steps 2 "
      "--num_train_epochs 2 --eval_strategy steps --eval_steps 6 --save_strategy steps "
      "--save_steps 12 --save_only_model true --output_dir out",
      {{"MAX_NEGATIVE_SAMPLES", "3"}, {"MAX_POSITIVE_SAMPLES", "1"}});
  auto const& s = parsed.settings;

  EXPECT_EQ(s.model.device, "cpu");
  EXPECT_EQ(s.model.dtype, "float32");
  EXPECT_EQ(s.model.adapter, "adapter_init");
  EXPECT_FALSE(s.data.shuffle);
  EXPECT_EQ(s.data.max_negatives, 3);
  EXPECT_TRUE(s.run.save_only_model);
  EXPECT_EQ(s.run.eval_strategy, "steps");
  EXPECT_EQ(s.parallel.recompute, "none");
}

TEST(SwiftNames, OfLossesAreReadAsOurs) {
  for (auto const* name : {"generative_reranker", "pointwise_reranker", "reranker"})
    EXPECT_EQ(train(text("--loss_type ", name)).settings.loss.kind, "pointwise") << name;
  for (auto const* name : {"listwise_reranker", "listwise_generative_reranker"})
    EXPECT_EQ(train(text("--loss_type ", name)).settings.loss.kind, "listwise") << name;
  EXPECT_TRUE(contains(train_error("--loss_type infonce"), "choose pointwise or listwise"));
}

TEST(SwiftNames, ThatChangeNothingAreIgnoredWithOneNotice) {
  for (auto const* line : {"--check_model false",
                           "--add_version true",
                           "--report_to tensorboard",
                           "--use_hf true",
                           "--model_type qwen3_vl",
                           "--logging_first_step true",
                           "--dataloader_pin_memory",
                           "--dataloader_prefetch_factor 2",
                           "--dataloader_persistent_workers true",
                           "--save_safetensors true",
                           "--safe_serialization true",
                           "--ddp_timeout 1800",
                           "--ddp_find_unused_parameters false",
                           "--remove_unused_columns false",
                           "--label_names labels",
                           "--padding_side right",
                           "--gradient_checkpointing_kwargs '{\"use_reentrant\": false}'",
                           "--vit_gradient_checkpointing false",
                           "--logging_dir logs",
                           "--run_name mine",
                           "--optim adamw_torch_fused",
                           "--packing true",
                           "--streaming false",
                           "--use_dora false",
                           "--truncation_strategy delete",
                           "--bf16 false",
                           "--fp16 false",
                           "--use_cpu false",
                           "--sequence_parallel_size 1",
                           "--loss_scale default",
                           "--lazy_tokenize false",
                           "--val_dataset_shuffle true",
                           "--init_weights true",
                           "--report_to tensorboard swanlab"}) {
    auto const parsed = train(line);
    EXPECT_EQ(parsed.notices.size(), 1U) << line << "\n" << notices(parsed);
    EXPECT_TRUE(contains(notices(parsed), " is ignored: ")) << line << "\n" << notices(parsed);
    EXPECT_EQ(to_json("train", parsed.settings), to_json("train", train("").settings)) << line;
  }
}

TEST(SwiftNames, ThatCannotBeHonouredAreRefusedWithOurs) {
  std::vector<std::pair<std::string, std::string>> const cases = {
      {"--fsdp fsdp2", "--zero 3"},
      {"--quant_bits 4", "--dtype bfloat16"},
      {"--streaming true", "read as a stream"},
      {"--neftune_noise_alpha 5", "leave it out"},
      {"--device_map auto", "--zero 3"},
      {"--deepspeed zero3_offload", "--zero 0, 1, 2, 3 or auto"},
      {"--deepspeed ds_config.json", "--zero 0, 1, 2, 3 or auto"},
      {"--sequence_parallel_size 2", "--micro-batch-tokens"},
      {"--loss_scale hermes", "--pos-weight"},
      {"--truncation_strategy left", "--truncation document"},
      {"--truncation_strategy split", "--truncation document"},
      {"--optim sgd", "AdamW"},
      {"--use_dora true", "--lora-rank"},
      {"--use_dora", "--lora-rank"},
      {"--task_type causal_lm", "generative_reranker"},
      {"--external_plugins p.py", "plug-ins"},
      {"--train_type longlora", "choose lora or full"},
      {"--system 'Judge it'", "--instruction"},
      {"--modules_to_save embed_tokens", "--target-modules"},
      {"--save_safetensors false", "leave it out"},
      {"--lr_scheduler_kwargs '{\"num_cycles\": 3}'", "--min-lr"},
      {"--lr_scheduler_kwargs min_lr=1", "is not a JSON object"},
  };
  for (auto const& [line, remedy] : cases)
    EXPECT_TRUE(contains(train_error(line), remedy)) << line << "\n" << train_error(line);
}

TEST(SwiftNames, SchedulersArgumentsBecomeOptions) {
  EXPECT_DOUBLE_EQ(train("--lr_scheduler_type cosine_with_min_lr --lr_scheduler_kwargs "
                         "'{\"min_lr\": 1e-6}'")
                       .settings.schedule.min_lr,
                   1e-6);
  auto const s = train(
                     "--learning_rate 2e-4 --lr_scheduler_kwargs "
                     "'{\"min_lr_rate\": 0.1, \"num_decay_steps\": 30}'")
                     .settings;
  EXPECT_DOUBLE_EQ(s.schedule.min_lr, 2e-5);
  EXPECT_EQ(s.schedule.decay_steps, 30);
}

TEST(SwiftNames, PixelLimitsBecomeTokens) {
  EXPECT_EQ(train("--max_pixels 1310720").settings.data.image_max_tokens, 1280);
  EXPECT_EQ(train("--model_kwargs '{\"image_max_token_num\": 768}'").settings.data.image_max_tokens,
            768);
  EXPECT_EQ(train("", {{"MAX_PIXELS", "602112"}}).settings.data.image_max_tokens, 588);
  EXPECT_EQ(train("", {{"IMAGE_MAX_TOKEN_NUM", "256"}, {"IMAGE_MIN_TOKEN_NUM", "16"}})
                .settings.data.image_min_tokens,
            16);
  EXPECT_TRUE(contains(train_error("--max_pixels 5"), "--max-pixels=5 is out of range"));
}

TEST(SwiftNames, VariablesOfTheEnvironmentAreReadAndTold) {
  auto const parsed = train("--loss listwise", {{"LISTWISE_RERANKER_TEMPERATURE", "0.5"},
                                                {"LISTWISE_RERANKER_MIN_GROUP_SIZE", "3"},
                                                {"MAX_POSITIVE_SAMPLES", "2"}});

  EXPECT_DOUBLE_EQ(parsed.settings.loss.temperature, 0.5);
  EXPECT_EQ(parsed.settings.loss.min_group_size, 3);
  EXPECT_EQ(parsed.settings.data.max_positives, 2);
  EXPECT_TRUE(contains(notices(parsed), "MAX_POSITIVE_SAMPLES=2 of the environment is read as"));
  EXPECT_TRUE(contains(train_error("", {{"MAX_NEGATIVE_SAMPLES", "many"}}),
                       "MAX_NEGATIVE_SAMPLES=many is not a whole number"));
  EXPECT_TRUE(contains(train_error("", {{"GENERATIVE_RERANKER_POSITIVE_TOKEN", "ja"}}),
                       "GENERATIVE_RERANKER_POSITIVE_TOKEN=ja"));
}

TEST(SwiftNames, TheCommandLineWinsOverTheEnvironment) {
  auto const parsed = train("--max_negatives 2", {{"MAX_NEGATIVE_SAMPLES", "5"}});

  EXPECT_EQ(parsed.settings.data.max_negatives, 2);
  EXPECT_TRUE(contains(notices(parsed), "MAX_NEGATIVE_SAMPLES=5 of the environment gives way"));
}

TEST(LaunchVariables, AreExplainedWithTheLineThatDoesTheSame) {
  EXPECT_TRUE(
      contains(notices(train("", {{"NPROC_PER_NODE", "4"}})), "`mpirun -n 4 vlrerank train"));
  auto const nodes = notices(train("", {{"NPROC_PER_NODE", "8"}, {"NNODES", "2"}}));
  EXPECT_TRUE(contains(nodes, "mpirun -n 16 --map-by ppr:8:node")) << nodes;
  EXPECT_TRUE(contains(nodes, "srun --nodes 2 --ntasks 16")) << nodes;
  auto const torchrun = notices(train("", {{"RANK", "1"}, {"WORLD_SIZE", "2"}}));
  EXPECT_TRUE(contains(torchrun, "every process trains alone")) << torchrun;
}

TEST(LaunchVariables, AreNoMatterUnderMpi) {
  EXPECT_EQ(notices(train("", {{"NPROC_PER_NODE", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}})), "");
}

}  // namespace
}  // namespace vlrerank
