// app/data.cpp -- opening data sets and showing what a prompt looks like.
#include "app/data.hpp"

#include <cstdio>

#include "prepare/prepare.hpp"

namespace vlrerank {
namespace {

/// Runs of picture tokens as one word with their number: a prompt stays readable.
std::string readable(std::string const& prompt) {
  constexpr std::string_view pad = "<|image_pad|>";
  std::string out;
  for (std::size_t at = 0; at < prompt.size();) {
    std::size_t count = 0;
    while (prompt.compare(at, pad.size(), pad) == 0) {
      at += pad.size();
      ++count;
    }
    if (count > 0)
      out += text("<|image_pad|>x", count);
    else
      out += prompt[at++];
  }
  return out;
}

}  // namespace

DataSet open_data(std::vector<std::string> const& names, Settings const& settings,
                  Tokenizer const& tokenizer, std::string const& cache, Communicator& control) {
  auto request = prepare_request(settings.data, settings.run.seed, tokenizer);
  request.inputs = names;
  request.notice = [&](std::string const& line) {
    if (control.is_root()) std::fprintf(stderr, "vlrerank: %s\n", line.c_str());
  };
  DataSet data(open_or_prepare(request, cache, control));
  std::string all;
  for (auto const& name : names) all += (all.empty() ? "" : ", ") + name;
  VLR_INPUT(data.rows() > 0, text("no row in ", all),
            "check the path; `vlrerank check` lists bad rows");
  return data;
}

void print_sample(DataSet const& data, Tokenizer const& tokenizer, Log const& log) {
  auto const stored = data.read(0);
  auto const& pair = stored.row.pairs.front();
  std::string ids;
  for (auto const id : pair.ids) ids += text(ids.empty() ? "" : " ", id);
  log(text("first pair (", stored.file, ":", stored.row.line, ", label ", pair.label, ", ",
           pair.ids.size(), " tokens, ", pair.media.size(), " pictures or videos):"));
  log("[INPUT] " + readable(tokenizer.decode(pair.ids)));
  log("[INPUT_IDS] " + ids);
}

}  // namespace vlrerank
