// train/session.cpp -- finding and loading a model and what is attached to it.
#include "train/session.hpp"

#include <ATen/ATen.h>

#include "params/full.hpp"

namespace vlrerank {
namespace {

namespace fs = std::filesystem;

std::string or_empty(char const* value) {
  return value == nullptr ? std::string() : std::string(value);
}

/// models--ORG--NAME/snapshots/<newest>, as Hugging Face lays out its cache.
std::optional<fs::path> newest_snapshot(fs::path const& repository) {
  std::optional<fs::path> newest;
  std::error_code error;
  for (auto const& entry : fs::directory_iterator(repository / "snapshots", error))
    if (fs::exists(entry.path() / "config.json", error) &&
        (!newest || fs::last_write_time(entry.path()) > fs::last_write_time(*newest)))
      newest = entry.path();
  return newest;
}

at::Device choose_device(std::string const& asked, Log const& log) {
  VLR_USAGE(asked != "cuda", "--device cuda, but this build has no CUDA backend",
            "build with -DVLRERANK_CUDA=ON, or give --device cpu");
  if (asked == "auto") log("device: CPU (this build has no CUDA backend)");
  return at::kCPU;
}

}  // namespace

fs::path find_model(std::string const& name,
                    std::function<char const*(char const*)> const& environment) {
  std::error_code error;
  if (fs::is_directory(name, error)) return name;
  bool const is_hub_id = name.find('/') != std::string::npos && name.front() != '/' &&
                         name.front() != '.' && name.find('/') == name.rfind('/');
  VLR_INPUT(is_hub_id, text("--model ", name, " is not a directory"),
            "give a folder with config.json, tokenizer.json and *.safetensors, or a hub id such as "
            "Qwen/Qwen3-VL-Reranker-8B that is in a local cache");

  auto const home = or_empty(environment("HOME"));
  auto hub = or_empty(environment("HF_HUB_CACHE"));
  if (hub.empty()) {
    auto const hf_home = or_empty(environment("HF_HOME"));
    hub = (hf_home.empty() ? fs::path(home) / ".cache/huggingface" : fs::path(hf_home)) / "hub";
  }
  auto const slash = name.find('/');
  auto const organisation = name.substr(0, slash);
  auto const model = name.substr(slash + 1);
  auto const repository = fs::path(hub) / ("models--" + organisation + "--" + model);
  if (auto const snapshot = newest_snapshot(repository)) return *snapshot;

  auto modelscope = or_empty(environment("MODELSCOPE_CACHE"));
  if (modelscope.empty()) modelscope = (fs::path(home) / ".cache/modelscope/hub").string();
  for (auto const& candidate : {fs::path(modelscope) / "models" / organisation / model,
                                fs::path(modelscope) / organisation / model})
    if (fs::exists(candidate / "config.json", error)) return candidate;

  throw Error(Exit::input,
              text("--model ", name, " is neither a directory nor in a local cache (looked in ",
                   repository.string(), " and ", modelscope, ")"),
              text("download it on a machine with network access (hf download ", name,
                   " --local-dir ", model,
                   ") and give that folder as --model; nothing is "
                   "downloaded here"),
              VLR_WHERE);
}

at::ScalarType choose_dtype(std::string const& asked, at::Device device, Log const& log) {
  if (device.is_cpu()) {
    if (asked != "auto" && asked != "float32")
      log(text("notice: --dtype ", asked, " on the CPU means float32"));
    return at::kFloat;
  }
  if (asked == "float32") return at::kFloat;
  return asked == "float16" ? at::kHalf : at::kBFloat16;
}

Session open_session(Settings const& settings, Purpose purpose, std::int64_t multiple,
                     std::function<char const*(char const*)> const& environment, Log const& log) {
  auto const directory = find_model(settings.model.model, environment);
  auto const config = ModelConfig::load(directory);
  auto tokenizer = Tokenizer::load(directory);
  PromptIds const prompt_ids(tokenizer);
  VLR_INPUT(tokenizer.size() <= config.text.vocab_size,
            text(directory.string(), ": the tokenizer has ", tokenizer.size(),
                 " ids, the model's embedding ", config.text.vocab_size, " rows"),
            "config.json and tokenizer.json belong to different models");
  Session session{directory,
                  std::move(tokenizer),
                  prompt_ids,
                  TensorFiles::open(directory),
                  std::make_unique<Reranker>(config),
                  at::kCPU,
                  at::kFloat,
                  {},
                  {}};
  session.device = choose_device(settings.model.device, log);
  session.dtype = choose_dtype(settings.model.dtype, session.device, log);
  session.model->load(session.files, session.dtype, session.device);
  session.model->set_answer_ids(prompt_ids.yes, prompt_ids.no);

  bool const lora = settings.trainable.tuner == "lora";
  bool const training = purpose == Purpose::training;
  auto const linears = session.model->linears();
  if (!settings.model.adapter.empty()) {
    VLR_USAGE(!training || lora, "--adapter with full fine-tuning",
              "merge the adapter first, or train with --tuner lora");
    session.adapter = load_adapter_config(settings.model.adapter);
    session.adapter->base_model = settings.model.model;
    session.arenas =
        attach_adapter(linears, *session.adapter, settings.run.seed, multiple, session.device);
    load_adapter(settings.model.adapter, linears);
  } else if (training && lora) {
    session.adapter = adapter_config(settings.lora, settings.trainable, settings.model.model);
    session.arenas =
        attach_adapter(linears, *session.adapter, settings.run.seed, multiple, session.device);
  } else if (training) {
    session.arenas =
        attach_full(session.model->parameters(), settings.trainable, multiple, session.device);
  }
  return session;
}

}  // namespace vlrerank
