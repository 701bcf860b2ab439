// tokenizer/tokenizer_file.cpp -- reads tokenizer.json in one pass: the 150,000 entries of
// vocabulary and merges go straight into vectors, the small rest becomes a JSON value that is then
// checked.
#include "tokenizer/tokenizer_file.hpp"

#include <xxhash.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"

namespace vlrerank {
namespace {

using nlohmann::json;

constexpr auto kRemedy = "use the tokenizer.json that came with the model";

/// Builds the JSON value, but diverts model.vocab and model.merges.
class Reader final : public nlohmann::json_sax<json> {
 public:
  explicit Reader(BpeSource& bpe) : bpe_(bpe) {}

  json take() { return std::move(root_); }
  std::string const& problem() const { return problem_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, string_t const&) override { return add(value); }
  bool binary(binary_t&) override { return fail("binary data"); }
  bool string(string_t& value) override {
    if (part_ != Part::merges) return add(std::move(value));
    if (depth_ == kMergeDepth) {
      bpe_.merges.push_back(std::move(value));
      return true;
    }
    auto const gap = value.find(' ');
    if (gap == std::string::npos) return fail("merge without a space: " + value);
    bpe_.merges.push_back(value.substr(0, gap));
    bpe_.merges.push_back(value.substr(gap + 1));
    return true;
  }
  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }
  bool start_object(std::size_t) override {
    if (part_ != Part::rest) return fail("an object inside vocab or merges");
    if (at_model() && key_ == "vocab") {
      part_ = Part::vocabulary;
      return true;
    }
    return open(json::object());
  }
  bool end_object() override {
    if (part_ == Part::vocabulary) {
      part_ = Part::rest;
      return true;
    }
    return close();
  }
  bool start_array(std::size_t) override {
    if (part_ == Part::merges && depth_ == 0) {
      pair_begin_ = bpe_.merges.size();
      depth_ = kMergeDepth;
      return true;
    }
    if (part_ != Part::rest) return fail("an array inside vocab or merges");
    if (at_model() && key_ == "merges") {
      part_ = Part::merges;
      return true;
    }
    return open(json::array());
  }
  bool end_array() override {
    if (part_ != Part::merges) return close();
    if (depth_ == 0) {
      part_ = Part::rest;
      return true;
    }
    depth_ = 0;
    return bpe_.merges.size() == pair_begin_ + 2 || fail("a merge is not of two tokens");
  }
  bool parse_error(std::size_t position, std::string const&,
                   json::exception const& error) override {
    bool const utf8 = std::string_view(error.what()).find("UTF-8") != std::string_view::npos;
    return fail(text(utf8 ? "bytes that are not UTF-8" : "not valid JSON", " at byte ", position));
  }

 private:
  enum class Part { rest, vocabulary, merges };
  static constexpr int kMergeDepth = 1;

  bool at_model() const { return stack_.size() == 2 && names_.back() == "model"; }

  bool number(std::int64_t value) {
    if (part_ == Part::vocabulary) {
      if (value < 0 || value > INT32_MAX) return fail(text("id ", value, " in vocab"));
      bpe_.vocabulary.push_back({std::move(key_), static_cast<std::int32_t>(value)});
      return true;
    }
    return add(value);
  }

  json* place(json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (stack_.back()->is_array()) return &stack_.back()->emplace_back(std::move(value));
    return &((*stack_.back())[key_] = std::move(value));
  }
  bool add(json value) {
    if (part_ != Part::rest) return fail("a value of the wrong kind in vocab or merges");
    place(std::move(value));
    return true;
  }
  bool open(json value) {
    names_.push_back(key_);
    stack_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    names_.pop_back();
    stack_.pop_back();
    return true;
  }
  bool fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  BpeSource& bpe_;
  Part part_ = Part::rest;
  int depth_ = 0;               // inside one merge written as an array: kMergeDepth
  std::size_t pair_begin_ = 0;  // where that merge begins in bpe_.merges
  json root_;
  std::vector<json*> stack_;        // the open objects and arrays, outermost first
  std::vector<std::string> names_;  // the key under which each of them stands
  std::string key_;
  std::string problem_;
};

bool is_set(json const& object, char const* key) {
  auto const found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

std::string kind_of(json const& object) {
  if (!object.is_object()) return object.is_null() ? "null" : "no object";
  auto const found = object.find("type");
  return found != object.end() && found->is_string() ? found->get<std::string>() : "no type";
}

json const& member(json const& object, char const* key) {
  static json const none;
  if (!object.is_object()) return none;
  auto const found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string pattern_of(json const& root, std::string const& file) {
  auto const& pre = member(root, "pre_tokenizer");
  auto const& list = member(pre, "pretokenizers");
  VLR_INPUT(kind_of(pre) == "Sequence" && list.is_array() && list.size() == 2 &&
                kind_of(list[0]) == "Split" && kind_of(list[1]) == "ByteLevel" &&
                member(list[0], "behavior") == "Isolated" && !is_set(list[0], "invert") &&
                !is_set(list[1], "add_prefix_space") && !is_set(list[1], "use_regex"),
            text(file, ": the pre-tokeniser is not Split (Isolated) followed by ByteLevel"),
            kRemedy);
  auto const& regex = member(member(list[0], "pattern"), "Regex");
  VLR_INPUT(regex.is_string(), text(file, ": the Split pre-tokeniser has no regular expression"),
            kRemedy);
  return regex.get<std::string>();
}

std::vector<AddedToken> added_of(json const& root, std::string const& file) {
  std::vector<AddedToken> added;
  auto const& list = member(root, "added_tokens");
  VLR_INPUT(list.is_array(), text(file, ": added_tokens is missing"), kRemedy);
  for (auto const& item : list) {
    auto const& content = member(item, "content");
    auto const& id = member(item, "id");
    VLR_INPUT(content.is_string() && !content.get_ref<std::string const&>().empty() &&
                  id.is_number_integer() && id.get<std::int64_t>() >= 0 &&
                  id.get<std::int64_t>() < (1 << 24),
              text(file, ": an added token without content or id"), kRemedy);
    VLR_INPUT(!is_set(item, "lstrip") && !is_set(item, "rstrip") && !is_set(item, "single_word"),
              text(file, ": the added token ", content.get<std::string>(),
                   " strips white space or wants a whole word, which Qwen's do not"),
              kRemedy);
    added.push_back({content.get<std::string>(), id.get<std::int32_t>(), is_set(item, "special")});
  }
  return added;
}

}  // namespace

TokenizerFile read_tokenizer_file(std::filesystem::path const& path) {
  auto const file = path.string();
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  VLR_INPUT(in.good() && !std::filesystem::is_directory(path), text(file, " cannot be read"),
            "give a model directory that holds tokenizer.json, or the file itself");
  std::string bytes(static_cast<std::size_t>(in.tellg()), '\0');
  in.seekg(0);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  VLR_IO(in.gcount() == static_cast<std::streamsize>(bytes.size()),
         text(file, ": reading stopped after ", in.gcount(), " of ", bytes.size(), " bytes"),
         "check the disk, and copy the file again");

  TokenizerFile result;
  result.fingerprint = XXH3_64bits(bytes.data(), bytes.size());
  Reader reader(result.bpe);
  VLR_INPUT(json::sax_parse(bytes, &reader), text(file, ": ", reader.problem()), kRemedy);
  auto const root = reader.take();
  auto const& model = member(root, "model");
  VLR_INPUT(
      kind_of(model) == "BPE" && !is_set(model, "byte_fallback") && !is_set(model, "fuse_unk"),
      text(file, ": the model is ", kind_of(model), ", not Qwen's byte-level BPE"), kRemedy);
  for (auto const* key : {"continuing_subword_prefix", "end_of_word_suffix", "dropout"}) {
    auto const& value = member(model, key);
    VLR_INPUT(value.is_null() || value == "" || value == 0.0,
              text(file, ": the model sets ", key, ", which Qwen's does not"), kRemedy);
  }
  VLR_INPUT(kind_of(member(root, "normalizer")) == "NFC",
            text(file, ": the normaliser is ", kind_of(member(root, "normalizer")), ", not NFC"),
            kRemedy);
  VLR_INPUT(!result.bpe.vocabulary.empty(), text(file, ": model.vocab is missing or empty"),
            kRemedy);
  result.pattern = pattern_of(root, file);
  result.added = added_of(root, file);
  return result;
}

}  // namespace vlrerank
