// train/save.cpp -- one draft folder, one rename.
#include "train/save.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <nlohmann/json.hpp>

#include "io/files.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

/// The folder a checkpoint is written in until it is whole; gone when anything fails before that.
class Draft {
 public:
  Draft(fs::path target, bool is_mine)
      : target_(std::move(target)), path_(target_.string() + ".partial"), is_mine_(is_mine) {
    if (!is_mine_) return;
    fs::remove_all(path_);
    make_directories(path_);
  }
  ~Draft() {
    std::error_code ignored;
    if (is_mine_) fs::remove_all(path_, ignored);
  }
  Draft(Draft const&) = delete;
  Draft& operator=(Draft const&) = delete;

  fs::path const& path() const { return path_; }
  /// Takes the place of a checkpoint that an attempt resumed from an older one has left.
  void commit() const {
    fs::remove_all(target_);
    rename_file(path_, target_);
  }

 private:
  fs::path target_;
  fs::path path_;
  bool is_mine_;
};

/// What a server must do alike to get the same scores.
void write_contract(fs::path const& directory, Settings const& settings) {
  auto const& data = settings.data;
  EncodeOptions const defaults;
  nlohmann::json out = {
      {"format", 1},
      {"prompt",
       {{"system", defaults.system},
        {"instruction", data.instruction.empty() ? defaults.instruction : data.instruction},
        {"user", "<Instruct>: {instruction}<Query>:{query}\n<Document>:{document}"},
        {"special_strings", data.parse_special_tokens ? "parsed" : "plain"}}},
      {"score", "sigmoid(logit(yes) - logit(no)) at the last token"},
      {"limits",
       {{"max_length", data.max_length},
        {"truncation", data.truncation},
        {"image_min_tokens", data.image_min_tokens},
        {"image_max_tokens", data.image_max_tokens},
        {"exif", data.ignore_exif ? "ignored" : "applied"}}}};
  write_file(directory / "vlrerank.json", out.dump(2) + "\n");
}

void save_model(fs::path const& draft, Session const& session) {
  NamedTensors tensors;
  for (auto const& [name, value] : session.model->state())
    tensors.emplace_back(name, value.detach().cpu());
  write_sharded_safetensors(draft, tensors);
  copy_model_files(session.directory, draft);
}

void write_draft(fs::path const& draft, Settings const& settings, Session const& session,
                 TrainerState const& state) {
  if (session.adapter)
    save_adapter(draft, session.model->linears(), *session.adapter);
  else
    save_model(draft, session);
  write_contract(draft, settings);
  write_trainer_state(draft, state);
}

}  // namespace

void copy_model_files(fs::path const& from, fs::path const& to) {
  for (auto const* name :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "preprocessor_config.json",
        "video_preprocessor_config.json", "processor_config.json", "generation_config.json",
        "chat_template.json", "chat_template.jinja", "vocab.json", "merges.txt",
        "special_tokens_map.json", "added_tokens.json"}) {
    std::error_code error;
    if (fs::exists(from / name, error)) write_file(to / name, read_file(from / name));
  }
}

void save_checkpoint(std::int64_t step, IsBest best, Settings const& settings, Session& session,
                     TrainerState const& state, ShardedAdamW& optimizer,
                     RunDirectory const& directory, Communicator& control) {
  Draft const draft(directory.checkpoint(step), control.is_root());
  if (control.is_root()) write_draft(draft.path(), settings, session, state);
  if (!settings.run.save_only_model)
    write_optimizer(draft.path(), session.arenas, optimizer, control, MasterValues::leave);
  if (control.is_root()) {
    draft.commit();
    directory.point("last", step);
    if (best == IsBest::yes) directory.point("best", step);
    directory.prune(settings.run.save_total_limit);
  }
  control.barrier();
}

void load_trained(fs::path const& checkpoint, Session& session) {
  bool const holds_adapter = fs::exists(checkpoint / "adapter_config.json");
  VLR_USAGE(holds_adapter == session.adapter.has_value(),
            text(checkpoint.string(), " holds ", holds_adapter ? "an adapter" : "a whole model"),
            text("resume with --tuner ", holds_adapter ? "lora" : "full"));
  if (session.adapter) {
    auto const old = load_adapter_config(checkpoint);
    VLR_USAGE(old.scale() == session.adapter->scale() && old.rank == session.adapter->rank,
              text(checkpoint.string(), " has rank ", old.rank, " and scale ", old.scale(),
                   ", this run ", session.adapter->rank, " and ", session.adapter->scale()),
              "resume with the run's own --lora-rank, --lora-alpha and --use-rslora");
    load_adapter(checkpoint, session.model->linears());
    return;
  }
  auto const files = TensorFiles::open(checkpoint);
  at::NoGradGuard const no_grad;
  for (auto& arena : session.arenas)
    for (std::size_t i = 0; i < arena.slices().size(); ++i)
      arena.parameter(i).detach().copy_(files.get(arena.slices()[i].name));
}

}  // namespace vlrerank
