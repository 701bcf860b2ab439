// data/lines.cpp -- files of lines, plain or compressed, read in pieces: memory holds one piece and
// the longest line. The compression is told by the first bytes, not by the name.
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "data/rows.hpp"

namespace vlrerank {
namespace {

constexpr std::size_t kPiece = 1 << 18;  // bytes
constexpr auto kRemedy = "give a JSON lines file, plain or compressed with gzip or zstd";

void close_file(int file) noexcept {
  if (file != STDIN_FILENO) ::close(file);
}

/// The bytes of a file as they are.
class RawFile {
 public:
  explicit RawFile(std::string const& path)
      : path_(path),
        file_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    VLR_INPUT(file_.get() >= 0, text(path, " cannot be opened: ", std::strerror(errno)), kRemedy);
  }
  /// Fills `buffer` as far as the file goes; 0 at its end.
  std::size_t read(std::string& buffer) {
    buffer.resize(kPiece);
    std::size_t have = 0;
    while (have < kPiece) {
      auto const got = ::read(file_.get(), buffer.data() + have, kPiece - have);
      if (got < 0 && errno == EINTR) continue;
      VLR_INPUT(got >= 0 || errno != EISDIR, text(path_, " is a directory, not a file"), kRemedy);
      VLR_IO(got >= 0, text(path_, " cannot be read: ", std::strerror(errno)), "check the disk");
      if (got == 0) break;
      have += static_cast<std::size_t>(got);
    }
    buffer.resize(have);
    return have;
  }
  std::string const& path() const { return path_; }

 private:
  std::string path_;
  Handle<int, close_file> file_;
};

using Piece = std::function<void(std::string_view)>;

void read_plain(RawFile& file, std::string& buffer, Piece const& piece) {
  do {
    piece(buffer);
  } while (file.read(buffer) > 0);
}

void read_gzip(RawFile& file, std::string& buffer, Piece const& piece) {
  z_stream stream{};
  VLR_REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK, "zlib cannot be started", "free some memory");
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } const end{&stream};
  std::string out(kPiece, '\0');
  bool inside = false;  // within a member; the file may end only outside
  do {
    stream.next_in = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_in = static_cast<uInt>(buffer.size());
    while (stream.avail_in > 0) {
      if (!inside) inflateReset(&stream);  // gzip files may be joined end to end
      inside = true;
      do {
        stream.next_out = reinterpret_cast<Bytef*>(out.data());
        stream.avail_out = static_cast<uInt>(out.size());
        auto const state = inflate(&stream, Z_NO_FLUSH);
        VLR_INPUT(state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR,
                  text(file.path(), " is damaged: ", stream.msg != nullptr ? stream.msg : "gzip"),
                  "compress the file again");
        piece({out.data(), out.size() - stream.avail_out});
        if (state == Z_STREAM_END) inside = false;
      } while (inside && stream.avail_out == 0);
    }
  } while (file.read(buffer) > 0);
  VLR_INPUT(!inside, text(file.path(), " is cut off: its gzip stream does not end"),
            "copy the file again");
}

void free_zstd(ZSTD_DCtx* context) noexcept {
  ZSTD_freeDCtx(context);
}

void read_zstd(RawFile& file, std::string& buffer, Piece const& piece) {
  Handle<ZSTD_DCtx*, free_zstd> const context(ZSTD_createDCtx());
  VLR_REQUIRE(context.get() != nullptr, "zstd cannot be started", "free some memory");
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 31);
  std::string out(kPiece, '\0');
  std::size_t wanted = 0;  // 0 between frames
  do {
    ZSTD_inBuffer in{buffer.data(), buffer.size(), 0};
    bool full = false;
    while (in.pos < in.size || (full && wanted != 0)) {
      ZSTD_outBuffer made{out.data(), out.size(), 0};
      wanted = ZSTD_decompressStream(context.get(), &made, &in);
      VLR_INPUT(ZSTD_isError(wanted) == 0U,
                text(file.path(), " is damaged: ", ZSTD_getErrorName(wanted)),
                "compress the file again");
      piece({out.data(), made.pos});
      full = made.pos == made.size;
    }
  } while (file.read(buffer) > 0);
  VLR_INPUT(wanted == 0, text(file.path(), " is cut off: its zstd frame does not end"),
            "copy the file again");
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\v\f") == std::string_view::npos;
}

/// Joins pieces into lines.
class LineCutter {
 public:
  LineCutter(std::string const& path,
             std::function<void(std::int64_t, std::string_view)> const& visit)
      : path_(path), visit_(visit) {}

  void take(std::string_view piece) {
    while (!piece.empty()) {
      auto const end = piece.find('\n');
      if (end == std::string_view::npos) {
        open_.append(piece);
        return;
      }
      if (open_.empty()) {
        line(piece.substr(0, end));
      } else {
        open_.append(piece.substr(0, end));
        line(open_);
        open_.clear();
      }
      piece.remove_prefix(end + 1);
    }
  }
  void finish() {
    if (!open_.empty()) line(open_);
  }

 private:
  void line(std::string_view bytes) {
    ++number_;
    if (number_ == 1) {
      VLR_INPUT(!bytes.starts_with("\xFF\xFE") && !bytes.starts_with("\xFE\xFF"),
                text(path_, " is UTF-16"), "save the file as UTF-8");
      if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
    }
    if (bytes.ends_with('\r')) bytes.remove_suffix(1);
    if (!is_blank(bytes)) visit_(number_, bytes);
  }

  std::string const& path_;
  std::function<void(std::int64_t, std::string_view)> const& visit_;
  std::string open_;  ///< a line whose end has not come yet
  std::int64_t number_ = 0;
};

}  // namespace

void for_each_line(std::string const& path,
                   std::function<void(std::int64_t, std::string_view)> const& visit) {
  RawFile file(path);
  LineCutter cutter(path, visit);
  Piece const piece = [&cutter](std::string_view bytes) { cutter.take(bytes); };
  std::string buffer;
  if (file.read(buffer) == 0) return;
  if (buffer.starts_with("\x1F\x8B")) {
    read_gzip(file, buffer, piece);
  } else if (buffer.starts_with("\x28\xB5\x2F\xFD")) {
    read_zstd(file, buffer, piece);
  } else {
    read_plain(file, buffer, piece);
  }
  cutter.finish();
}

}  // namespace vlrerank
