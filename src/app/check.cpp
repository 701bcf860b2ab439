// app/check.cpp -- `vlrerank check`: reads the data and the model's headers, and says everything
// that is wrong or worth knowing before a run. No pixel is decoded but with --dump.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "app/check_dump.hpp"
#include "app/check_summary.hpp"
#include "app/commands.hpp"
#include "app/environment.hpp"
#include "core/error.hpp"
#include "media/named.hpp"
#include "model/reranker.hpp"
#include "prepare/sources.hpp"
#include "safetensors/safetensors.hpp"
#include "train/session.hpp"

namespace vlrerank {
namespace {

/// Grids from headers; each file is looked at once.
class Headers {
 public:
  explicit Headers(ImageOptions const& options) : options_(options) {}

  MediumGrid grid(Part const& part) {
    if (auto const* const video = std::get_if<VideoSource>(&part)) {
      auto const shape = probe_video(*video, video_options(options_));
      return {shape.grid, true, shape.seconds};
    }
    auto const& source = std::get<ImageSource>(part);
    if (source.path.empty()) return {look(source), false, {}};
    auto const known = grids_.find(source.path);
    if (known != grids_.end()) return {known->second, false, {}};
    return {grids_.emplace(source.path, look(source)).first->second, false, {}};
  }

 private:
  Grid look(ImageSource const& source) const {
    return name_errors(name_of(source), [&] {
      auto const header = read_image_header(read_source(source, options_), options_);
      return grid_of(target_size(header.size, options_));
    });
  }

  ImageOptions const& options_;
  std::unordered_map<std::string, Grid> grids_;
};

/// The file that --report names, or nothing.
class Report {
 public:
  explicit Report(std::string const& path) : path_(path) {
    if (path.empty()) return;
    file_.open(path);
    VLR_IO(file_.good(), text(path, " cannot be written"), "give --report another file");
  }
  void line(std::string const& words) {
    if (!path_.empty()) file_ << words << '\n';
  }
  void close() {
    if (path_.empty()) return;
    file_.close();
    VLR_IO(file_.good(), text(path_, " could not be written to its end"), "free some space");
  }

 private:
  std::string path_;
  std::ofstream file_;
};

/// The lines of --dump FIRST:LAST, or of a lone number.
struct LineRange {
  explicit LineRange(std::string const& written) {
    auto const colon = written.find(':');
    auto const number = [&](std::string_view digits) {
      std::int64_t value = 0;
      auto const end = digits.data() + digits.size();
      auto const read = std::from_chars(digits.data(), end, value);
      VLR_USAGE(read.ec == std::errc() && read.ptr == end, text("--dump ", written, " is no range"),
                "write two line numbers, as 1:20");
      return value;
    };
    first = number(std::string_view(written).substr(0, colon));
    last = colon == std::string::npos ? first : number(std::string_view(written).substr(colon + 1));
  }
  std::int64_t first = 0;
  std::int64_t last = 0;
};

void dump(RowReader const& reader, Settings const& settings) {
  LineRange const range(settings.check.dump);
  auto const positions = settings.check.dump_positions ? DumpPositions::yes : DumpPositions::no;
  for (auto const& input : settings.data.dataset) {
    auto const path = parse_source(input).path;
    for_each_line(path, [&](std::int64_t line, std::string_view bytes) {
      if (line < range.first || line > range.last) return;
      auto const json = dump_row(reader, bytes, path, line, positions);
      std::fwrite(json.data(), 1, json.size(), stdout);
      std::fputc('\n', stdout);
    });
  }
}

/// The first pair of the data as the model sees it, with its ids. Runs of pads stand as one with
/// their number.
std::string first_pair(EncodedRow const& row, ParsedRow const& parsed, RowReader const& reader) {
  auto const& pair = row.pairs.front();
  auto out = text("first pair (", parsed.sample.file, ":", parsed.sample.line, ", label ",
                  pair.label, "):\n");
  std::string ids;
  for (std::size_t at = 0; at < pair.ids.size();) {
    auto const id = pair.ids[at];
    bool const pad = id == reader.prompt_ids.image_pad || id == reader.prompt_ids.video_pad;
    std::size_t run = 1;
    while (pad && at + run < pair.ids.size() && pair.ids[at + run] == id) ++run;
    auto const times = run > 1 ? text("x", run) : "";
    out += reader.request.tokenizer->decode({&id, 1}) + times;
    ids += text(" ", id, times);
    at += run;
  }
  return out + "\nids:" + ids + "\n";
}

class Checker {
 public:
  Checker(RowReader const& reader, Settings const& settings)
      : reader_(reader),
        settings_(settings),
        headers_(reader.request.image),
        report_(settings.check.report) {}

  CheckSummary run() {
    std::vector<Source> sources;
    std::vector<std::int64_t> totals;
    for (auto const& input : settings_.data.dataset) {
      VLR_USAGE(!std::filesystem::is_directory(input), text(input, " is a directory"),
                "check reads JSON lines; `vlrerank inspect` tells what a shard set holds");
      sources.push_back(parse_source(input));
      totals.push_back(count_rows(sources.back().path));
    }
    for_each_row(
        sources, totals, settings_.run.seed,
        [this](std::int64_t, Source const& source, std::int64_t line, std::string_view bytes) {
          try {
            accept(source, line, bytes);
          } catch (Error const& error) {
            if (error.code() != Exit::input) throw;
            BadRow bad{source.path, line, error.summary()};
            report_.line(bad.text());
            add_bad_row(summary_.report, std::move(bad));
          }
        });
    report_.close();
    return std::move(summary_);
  }

 private:
  void accept(Source const& source, std::int64_t line, std::string_view bytes) {
    auto const& request = reader_.request;
    auto const parsed = parse_row(bytes, source.path, line, request.rows);
    std::vector<MediumGrid> grids;
    for (auto const* part : media_of(parsed.sample)) grids.push_back(headers_.grid(*part));
    auto const row = encode_row(parsed.sample, std::move(grids), *request.tokenizer,
                                reader_.prompt_ids, request.encode);
    add_row(summary_.report, parsed, row);
    summary_.add(parsed, row, settings_);
    if (summary_.sample.empty()) summary_.sample = first_pair(row, parsed, reader_);
    for (auto const& warning : parsed.warnings)
      report_.line(text(source.path, ":", line, ": warning: ", warning));
    std::int64_t cut = 0;
    for (auto const& pair : row.pairs) cut += pair.cut_tokens;
    if (cut > 0) report_.line(text(source.path, ":", line, ": ", cut, " tokens are cut"));
  }

  RowReader const& reader_;
  Settings const& settings_;
  Headers headers_;
  Report report_;
  CheckSummary summary_;
};

void print(std::string const& words) {
  std::fwrite(words.data(), 1, words.size(), stdout);
}

/// names.md's rule for bad rows; an empty set is unusable too.
void judge(PrepareReport const& report, DataSettings const& data) {
  auto const seen = report.rows + report.bad_rows;
  auto const limit = data.strict              ? 0
                     : data.max_bad_rows >= 0 ? data.max_bad_rows
                                              : std::max<std::int64_t>(10, seen / 1000);
  VLR_INPUT(report.bad_rows <= limit,
            text(report.bad_rows, " of ", seen, " rows are bad, more than the ", limit, " allowed"),
            "mend the rows listed above, or raise --max-bad-rows");
  VLR_INPUT(report.rows > 0,
            report.first_bad.empty() ? std::string("the data hold no row")
                                     : text("no row is usable: ", report.first_bad.front().text()),
            "give JSON lines in one of the forms that the reason names");
}

}  // namespace

namespace {

/// Reads the headers of the weight files: every tensor of the model must be there in its shape.
void check_weights(std::filesystem::path const& directory) {
  auto const files = TensorFiles::open(directory);
  Reranker const model(ModelConfig::load(directory));
  for (auto const& parameter : model.parameters()) {
    VLR_INPUT(files.contains(parameter.name), text(directory.string(), " lacks ", parameter.name),
              "the checkpoint is incomplete, or config.json is another model's");
    VLR_INPUT(
        files.info(parameter.name).shape == parameter.shape,
        text(directory.string(), ": ", parameter.name, " has another shape than config.json says"),
        "config.json and the weights belong to different models");
  }
}

}  // namespace

int run_check(Settings const& settings) {
  auto const directory = find_model(settings.model.model, environment);
  auto const tokenizer = Tokenizer::load(directory);
  PromptIds const prompt_ids(tokenizer);
  check_weights(directory);
  auto const request = prepare_request(settings.data, settings.run.seed, tokenizer);
  for (auto const& input : settings.data.dataset)
    VLR_USAGE(input != "-", "check reads its input twice and cannot take standard input",
              "write the rows to a file");
  RowReader const reader{request, prompt_ids};
  if (!settings.check.dump.empty()) {
    dump(reader, settings);
    return 0;
  }
  auto const summary = Checker(reader, settings).run();
  for (auto const& bad : summary.report.first_bad) print(bad.text() + "\n");
  auto const listed = static_cast<std::int64_t>(summary.report.first_bad.size());
  if (summary.report.bad_rows > listed)
    print(text("... and ", summary.report.bad_rows - listed,
               " more; --report FILE takes them all\n"));
  print(show_counts(summary));
  if (summary.report.rows > 0) {
    print(show_steps(summary, settings));
    print(show_forecast(summary, settings, ModelConfig::load(directory)));
    print(summary.sample);
  }
  judge(summary.report, settings.data);
  return 0;
}

}  // namespace vlrerank
