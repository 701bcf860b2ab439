// metrics/tensorboard.hpp -- event files that TensorBoard shows: scalars and texts.
// The file is a sequence of TFRecords (length, masked CRC-32C, bytes, masked CRC-32C), each an
// Event message of TensorFlow's event.proto, encoded here field by field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace vlrerank {

/// A new event file of its own in a run directory. Errors: exit 74.
class TensorBoardWriter {
 public:
  /// @param first_step  of a resumed run: what earlier files of the directory say of this step and
  ///                    later ones is no longer shown; 0: a new run
  explicit TensorBoardWriter(std::filesystem::path const& directory, std::int64_t first_step = 0);
  TensorBoardWriter(TensorBoardWriter const&) = delete;
  TensorBoardWriter& operator=(TensorBoardWriter const&) = delete;
  ~TensorBoardWriter();

  /// @param tag  as "train/loss"; what stands before the slash becomes a section
  void scalar(std::string_view tag, std::int64_t step, double value);
  /// Shown as Markdown.
  void note(std::string_view tag, std::int64_t step, std::string_view markdown);

  std::filesystem::path const& path() const { return path_; }

 private:
  void record(std::string const& event);

  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace vlrerank
