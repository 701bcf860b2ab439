// safetensors/reader.cpp -- one file: mapping, header checks, views.
// Layout: 8 bytes little-endian header length, the header as JSON, then the data without holes.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "safetensors/safetensors.hpp"

namespace vlrerank {
namespace {

constexpr std::uint64_t max_header_bytes = 100'000'000;  // the reference implementation's limit
constexpr char const* damaged_remedy =
    "the file is damaged or was cut while copying: fetch or write it again";

struct DtypeName {
  at::ScalarType dtype;
  char const* name;
};
/// In the reference implementation's order, which puts narrow ones first.
constexpr DtypeName dtype_names[] = {
    {at::kBool, "BOOL"},
    {at::kByte, "U8"},
    {at::kChar, "I8"},
    {at::kFloat8_e5m2, "F8_E5M2"},
    {at::kFloat8_e4m3fn, "F8_E4M3"},
    {at::kShort, "I16"},
    {at::kUInt16, "U16"},
    {at::kHalf, "F16"},
    {at::kBFloat16, "BF16"},
    {at::kInt, "I32"},
    {at::kUInt32, "U32"},
    {at::kFloat, "F32"},
    {at::kComplexFloat, "C64"},
    {at::kDouble, "F64"},
    {at::kLong, "I64"},
    {at::kUInt64, "U64"},
};

void close_descriptor(int descriptor) noexcept {
  ::close(descriptor);
}
using Descriptor = Handle<int, close_descriptor>;

/// Parses the header and refuses a name that stands twice, which plain parsing would hide.
nlohmann::json parse_header(char const* begin, std::uint64_t length, std::string const& file) {
  std::set<std::string> seen;
  std::string twice;
  auto const watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (event == nlohmann::json::parse_event_t::key && depth == 1 &&
        !seen.insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  nlohmann::json header;
  try {
    header = nlohmann::json::parse(begin, begin + length, watch);
  } catch (nlohmann::json::exception const& error) {
    VLR_INPUT(false, text(file, ": the header is not JSON: ", error.what()), damaged_remedy);
  }
  VLR_INPUT(header.is_object(), text(file, ": the header is not a JSON object"), damaged_remedy);
  VLR_INPUT(twice.empty(), text(file, ": the tensor ", twice, " stands twice in the header"),
            damaged_remedy);
  return header;
}

/// One entry of the header, with every number checked against overflow and against the shape.
TensorInfo parse_entry(nlohmann::json const& entry, std::string const& where) {
  VLR_INPUT(entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string() &&
                entry.contains("shape") && entry["shape"].is_array() &&
                entry.contains("data_offsets") && entry["data_offsets"].is_array() &&
                entry["data_offsets"].size() == 2,
            text(where, " lacks dtype, shape or data_offsets"), damaged_remedy);
  TensorInfo info;
  auto const dtype = entry["dtype"].get<std::string>();
  info.dtype = dtype_of_safetensors(dtype);
  VLR_INPUT(info.dtype != at::ScalarType::Undefined, text(where, " has the unknown dtype ", dtype),
            "write the file with one of BOOL, U8..U64, I8..I64, F8, F16, BF16, F32, F64");
  std::uint64_t bytes = c10::elementSize(info.dtype);
  bool overflow = false;
  for (auto const& size : entry["shape"]) {
    VLR_INPUT(size.is_number_unsigned(), text(where, " has a shape that is not made of counts"),
              damaged_remedy);
    auto const count = size.get<std::uint64_t>();
    overflow |= count > static_cast<std::uint64_t>(INT64_MAX) ||
                __builtin_mul_overflow(bytes, count, &bytes);
    info.shape.push_back(static_cast<std::int64_t>(count));
  }
  for (auto const& offset : entry["data_offsets"])
    VLR_INPUT(offset.is_number_unsigned(), text(where, " has offsets that are not counts"),
              damaged_remedy);
  info.begin = entry["data_offsets"][0].get<std::uint64_t>();
  info.end = entry["data_offsets"][1].get<std::uint64_t>();
  VLR_INPUT(!overflow && info.begin <= info.end && info.end - info.begin == bytes,
            text(where, " has offsets ", info.begin, " to ", info.end, ", but its shape and dtype ",
                 dtype, overflow ? " are too large" : text(" need ", bytes, " bytes")),
            damaged_remedy);
  return info;
}

/// The ranges, sorted, must follow each other from 0 to `total` without overlap or hole.
void check_ranges(std::map<std::string, TensorInfo> const& tensors, std::uint64_t total,
                  std::string const& file) {
  std::vector<std::pair<std::string const*, TensorInfo const*>> order;
  for (auto const& [name, info] : tensors) order.emplace_back(&name, &info);
  std::sort(order.begin(), order.end(), [](auto const& a, auto const& b) {
    return std::pair(a.second->begin, a.second->end) < std::pair(b.second->begin, b.second->end);
  });
  std::uint64_t reached = 0;
  for (auto const& [name, info] : order) {
    VLR_INPUT(info->begin == reached,
              text(file, ": the tensor ", *name, " begins at byte ", info->begin, ", ",
                   info->begin < reached ? "inside the one before it" : "after a hole", " (",
                   reached, " was due)"),
              damaged_remedy);
    reached = info->end;
  }
  VLR_INPUT(
      reached == total,
      text(file, ": the header describes ", reached, " bytes of data, the file holds ", total),
      damaged_remedy);
}

}  // namespace

int safetensors_dtype_rank(at::ScalarType dtype) {
  for (std::size_t i = 0; i < std::size(dtype_names); ++i)
    if (dtype_names[i].dtype == dtype) return static_cast<int>(i);
  VLR_REQUIRE(false, text("safetensors has no name for dtype ", c10::toString(dtype)),
              "convert the tensor to float32, bfloat16 or an integer type first");
}

std::string safetensors_dtype(at::ScalarType dtype) {
  return dtype_names[safetensors_dtype_rank(dtype)].name;
}

at::ScalarType dtype_of_safetensors(std::string const& name) {
  for (auto const& row : dtype_names)
    if (name == row.name) return row.dtype;
  return at::ScalarType::Undefined;
}

/// A file mapped read-only for as long as any tensor over it lives.
class TensorFile::Mapping {
 public:
  Mapping(std::filesystem::path const& path) {
    Descriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    VLR_IO(file.get() >= 0, text(path.string(), " cannot be opened: ", std::strerror(errno)),
           "check the path and its permissions");
    struct stat status {};
    VLR_IO(::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode),
           text(path.string(), " is not a regular file"), "give the path of a .safetensors file");
    size_ = static_cast<std::uint64_t>(status.st_size);
    if (size_ == 0) return;
    void* const at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    VLR_IO(at != MAP_FAILED, text(path.string(), " cannot be mapped: ", std::strerror(errno)),
           "check the file system and `ulimit -v`");
    begin_ = static_cast<char const*>(at);
  }
  ~Mapping() {
    if (begin_ != nullptr) ::munmap(const_cast<char*>(begin_), size_);
  }
  Mapping(Mapping const&) = delete;
  Mapping& operator=(Mapping const&) = delete;
  char const* begin() const { return begin_; }
  std::uint64_t size() const { return size_; }

 private:
  char const* begin_ = nullptr;
  std::uint64_t size_ = 0;
};

TensorFile TensorFile::open(std::filesystem::path const& path) {
  TensorFile file;
  file.path_ = path;
  auto const mapping = std::make_shared<Mapping const>(path);
  file.mapping_ = mapping;
  auto const name = path.string();
  VLR_INPUT(mapping->size() >= 8,
            text(name, " has ", mapping->size(), " bytes, too few for a safetensors file"),
            damaged_remedy);
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(mapping->begin()[i]);
  VLR_INPUT(length <= max_header_bytes && length <= mapping->size() - 8,
            text(name, ": the header claims ", length, " bytes, the file has ", mapping->size()),
            damaged_remedy);
  auto const header = parse_header(mapping->begin() + 8, length, name);
  for (auto const& [key, entry] : header.items()) {
    if (key != "__metadata__") {
      file.tensors_.emplace(key, parse_entry(entry, text(name, ": the tensor ", key)));
      continue;
    }
    VLR_INPUT(entry.is_object(), text(name, ": __metadata__ is not a JSON object"), damaged_remedy);
    for (auto const& [field, value] : entry.items()) {
      VLR_INPUT(value.is_string(), text(name, ": __metadata__ ", field, " is not a string"),
                damaged_remedy);
      file.metadata_.emplace(field, value.get<std::string>());
    }
  }
  file.data_begin_ = 8 + length;
  check_ranges(file.tensors_, mapping->size() - file.data_begin_, name);
  return file;
}

at::Tensor TensorFile::get(std::string const& name) const {
  auto const found = tensors_.find(name);
  VLR_INPUT(found != tensors_.end(), text(path_.string(), " has no tensor ", name),
            "list its names with `vlrerank inspect`");
  auto const& info = found->second;
  auto const options = at::TensorOptions().dtype(info.dtype);
  if (info.begin == info.end) return at::empty(info.shape, options);
  auto* const data = const_cast<char*>(mapping_->begin()) + data_begin_ + info.begin;
  if (reinterpret_cast<std::uintptr_t>(data) % c10::elementSize(info.dtype) != 0) {
    auto copy = at::empty(info.shape, options);
    std::memcpy(copy.data_ptr(), data, info.end - info.begin);
    return copy;
  }
  return at::from_blob(
      data, info.shape, [keep = mapping_](void*) {}, options);
}

}  // namespace vlrerank
