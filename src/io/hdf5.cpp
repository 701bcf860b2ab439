// io/hdf5.cpp -- the only file that includes hdf5.h.
#include "io/hdf5.hpp"

#include <hdf5.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "core/handle.hpp"
#include "io/files.hpp"
#include "io/seal.hpp"

namespace vlrerank::hdf5 {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie");

constexpr std::size_t most_objects = 256;                   // of a flat file
constexpr std::size_t longest_text = std::size_t{1} << 26;  // of a string attribute

void close_file(hid_t id) noexcept {
  H5Fclose(id);
}
void close_dataset(hid_t id) noexcept {
  H5Dclose(id);
}
void close_space(hid_t id) noexcept {
  H5Sclose(id);
}
void close_type(hid_t id) noexcept {
  H5Tclose(id);
}
void close_list(hid_t id) noexcept {
  H5Pclose(id);
}
void close_attribute(hid_t id) noexcept {
  H5Aclose(id);
}
using File = Handle<hid_t, close_file>;
using Dataset = Handle<hid_t, close_dataset>;
using Space = Handle<hid_t, close_space>;
using Datatype = Handle<hid_t, close_type>;
using Properties = Handle<hid_t, close_list>;
using AttributeId = Handle<hid_t, close_attribute>;

/// Passes a valid id or a success code through.
template <class Code>
Code check(Exit exit, Code code, char const* call, std::filesystem::path const& path) {
  VLR_CHECK_(exit, code >= 0, text(call, " failed on ", path.string()),
             exit == Exit::io ? "check that the disk has room and works"
                              : "the file is cut, damaged or not HDF5: make or fetch it again");
  return code;
}
#define VLR_HDF5_WRITE(call) check(Exit::io, (call), #call, path)
#define VLR_HDF5_READ(call) check(Exit::input, (call), #call, path)

hid_t file_type(Type type) {
  switch (type) {
    case Type::u8:
      return H5T_STD_U8LE;
    case Type::i32:
      return H5T_STD_I32LE;
    case Type::i64:
      return H5T_STD_I64LE;
    case Type::u64:
      return H5T_STD_U64LE;
    case Type::f32:
      return H5T_IEEE_F32LE;
    case Type::f64:
      return H5T_IEEE_F64LE;
  }
  return H5I_INVALID_HID;
}

constexpr Type all_types[] = {Type::u8, Type::i32, Type::i64, Type::u64, Type::f32, Type::f64};

void write_attribute(hid_t object, Attribute const& attribute, std::filesystem::path const& path) {
  Space space(VLR_HDF5_WRITE(H5Screate(H5S_SCALAR)));
  auto const* string = std::get_if<std::string>(&attribute.value);
  Datatype type(VLR_HDF5_WRITE(H5Tcopy(string ? H5T_C_S1
                                       : std::holds_alternative<std::int64_t>(attribute.value)
                                           ? H5T_STD_I64LE
                                           : H5T_STD_U64LE)));
  if (string) {
    VLR_HDF5_WRITE(H5Tset_size(type.get(), std::max<std::size_t>(string->size(), 1)));
    VLR_HDF5_WRITE(H5Tset_strpad(type.get(), H5T_STR_NULLPAD));
    VLR_HDF5_WRITE(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  }
  AttributeId id(VLR_HDF5_WRITE(H5Acreate2(object, attribute.name.c_str(), type.get(), space.get(),
                                           H5P_DEFAULT, H5P_DEFAULT)));
  void const* bytes =
      std::visit([](auto const& value) -> void const* { return &value; }, attribute.value);
  if (string) bytes = string->c_str();  // one NUL stands behind an empty one
  VLR_HDF5_WRITE(H5Awrite(id.get(), type.get(), bytes));
}

/// Integers and fixed-length strings; an attribute of another kind is not ours and is left out.
void read_attributes(hid_t object, std::string const& array, Layout& layout,
                     std::filesystem::path const& path) {
  H5O_info_t info{};
  VLR_HDF5_READ(H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS));
  VLR_INPUT(info.num_attrs <= most_objects,
            text(path.string(), " has ", info.num_attrs, " attributes"),
            "it is not a file of vlrerank");
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    AttributeId id(VLR_HDF5_READ(
        H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT)));
    Datatype type(VLR_HDF5_READ(H5Aget_type(id.get())));
    Space space(VLR_HDF5_READ(H5Aget_space(id.get())));
    if (H5Sget_simple_extent_npoints(space.get()) != 1) continue;
    char name[128] = {};
    if (VLR_HDF5_READ(H5Aget_name(id.get(), sizeof name, name)) >= ssize_t(sizeof name)) continue;
    auto const kind = H5Tget_class(type.get());
    auto const size = H5Tget_size(type.get());
    if (kind == H5T_INTEGER && H5Tget_sign(type.get()) == H5T_SGN_NONE) {
      std::uint64_t value = 0;
      VLR_HDF5_READ(H5Aread(id.get(), H5T_NATIVE_UINT64, &value));
      layout.attributes.push_back({name, value, array});
    } else if (kind == H5T_INTEGER) {
      std::int64_t value = 0;
      VLR_HDF5_READ(H5Aread(id.get(), H5T_NATIVE_INT64, &value));
      layout.attributes.push_back({name, value, array});
    } else if (kind == H5T_STRING && H5Tis_variable_str(type.get()) == 0 && size <= longest_text) {
      std::string value(size, '\0');
      VLR_HDF5_READ(H5Aread(id.get(), type.get(), value.data()));
      value.resize(value.find_last_not_of('\0') + 1);
      layout.attributes.push_back({name, std::move(value), array});
    }
  }
}

Array read_array(hid_t id, std::string const& name, std::uint64_t file_bytes,
                 std::filesystem::path const& path) {
  Array array{name, Type::u8, {}, 0};
  auto const require = [&](bool condition, char const* what) {
    VLR_INPUT(condition, text(path.string(), ": dataset ", name, " ", what),
              "it is damaged or not a file of vlrerank: make it again");
  };
  Properties list(VLR_HDF5_READ(H5Dget_create_plist(id)));
  require(H5Pget_layout(list.get()) == H5D_CONTIGUOUS, "is not contiguous");
  require(H5Pget_nfilters(list.get()) == 0, "has filters");
  require(H5Pget_external_count(list.get()) == 0, "lies in other files");

  Datatype type(VLR_HDF5_READ(H5Dget_type(id)));
  auto const found = std::find_if(std::begin(all_types), std::end(all_types), [&](Type candidate) {
    return H5Tequal(type.get(), file_type(candidate)) > 0;
  });
  require(found != std::end(all_types), "has an element type that is not one of ours");
  array.type = *found;

  Space space(VLR_HDF5_READ(H5Dget_space(id)));
  int const rank = H5Sget_simple_extent_ndims(space.get());
  require(rank == 1 || rank == 2, "has neither one nor two dimensions");
  hsize_t shape[2] = {0, 0};
  VLR_HDF5_READ(H5Sget_simple_extent_dims(space.get(), shape, nullptr));
  std::uint64_t bytes = size_of(array.type);
  for (int i = 0; i < rank; ++i) {
    require(shape[i] == 0 || bytes <= file_bytes / shape[i], "is larger than its file");
    bytes *= shape[i];
    array.shape.push_back(shape[i]);
  }
  if (bytes == 0) return array;
  require(H5Dget_storage_size(id) == bytes, "was never written");
  haddr_t const offset = H5Dget_offset(id);
  require(offset <= file_bytes && bytes <= file_bytes - offset, "ends behind its file");
  array.offset = offset;
  return array;
}

/// Everything but the file itself: datasets, where they lie, attributes.
void fill(hid_t file, Layout& layout, std::filesystem::path const& path) {
  Properties set(VLR_HDF5_WRITE(H5Pcreate(H5P_DATASET_CREATE)));
  VLR_HDF5_WRITE(H5Pset_layout(set.get(), H5D_CONTIGUOUS));
  VLR_HDF5_WRITE(H5Pset_alloc_time(set.get(), H5D_ALLOC_TIME_EARLY));
  VLR_HDF5_WRITE(H5Pset_fill_time(set.get(), H5D_FILL_TIME_NEVER));
  VLR_HDF5_WRITE(H5Pset_obj_track_times(set.get(), 0));
  for (auto& array : layout.arrays) {
    std::vector<hsize_t> const shape(array.shape.begin(), array.shape.end());
    Space space(
        VLR_HDF5_WRITE(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr)));
    Dataset id(VLR_HDF5_WRITE(H5Dcreate2(file, array.name.c_str(), file_type(array.type),
                                         space.get(), H5P_DEFAULT, set.get(), H5P_DEFAULT)));
    haddr_t const offset = array.elements() == 0 ? 0 : H5Dget_offset(id.get());
    VLR_IO(offset != HADDR_UNDEF, text("HDF5 gave no place to ", array.name, " in ", path.string()),
           "check that the disk has room and works");
    array.offset = offset;
    for (auto const& attribute : layout.attributes)
      if (attribute.array == array.name) write_attribute(id.get(), attribute, path);
  }
  for (auto const& attribute : layout.attributes)
    if (attribute.array.empty()) write_attribute(file, attribute, path);
}

}  // namespace

std::uint64_t size_of(Type type) {
  switch (type) {
    case Type::u8:
      return 1;
    case Type::i32:
    case Type::f32:
      return 4;
    case Type::i64:
    case Type::u64:
    case Type::f64:
      return 8;
  }
  return 0;
}

char const* name_of(Type type) {
  switch (type) {
    case Type::u8:
      return "uint8";
    case Type::i32:
      return "int32";
    case Type::i64:
      return "int64";
    case Type::u64:
      return "uint64";
    case Type::f32:
      return "float32";
    case Type::f64:
      return "float64";
  }
  return "";
}

std::uint64_t Array::elements() const {
  std::uint64_t count = 1;
  for (auto const extent : shape) count *= extent;
  return count;
}

Array const* Layout::array(std::string const& name) const {
  auto const found = std::find_if(arrays.begin(), arrays.end(),
                                  [&](Array const& array) { return array.name == name; });
  return found == arrays.end() ? nullptr : &*found;
}

Value const* Layout::attribute(std::string const& name, std::string const& of) const {
  auto const found = std::find_if(
      attributes.begin(), attributes.end(),
      [&](Attribute const& attribute) { return attribute.name == name && attribute.array == of; });
  return found == attributes.end() ? nullptr : &found->value;
}

void create(std::filesystem::path const& path, Layout& layout) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // our Error replaces HDF5's dump
  Properties access(VLR_HDF5_WRITE(H5Pcreate(H5P_FILE_ACCESS)));
  VLR_HDF5_WRITE(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110));
  VLR_HDF5_WRITE(H5Pset_alignment(access.get(), 1 << 16, 1 << 12));
#if H5_VERSION_GE(1, 10, 7)
  VLR_HDF5_WRITE(H5Pset_file_locking(access.get(), 0, 1));  // the temporary name is ours alone
#endif
  Properties creation(VLR_HDF5_WRITE(H5Pcreate(H5P_FILE_CREATE)));
  VLR_HDF5_WRITE(H5Pset_obj_track_times(creation.get(), 0));
  VLR_HDF5_WRITE(H5Pset_userblock(creation.get(), seal_bytes));
  hid_t const file =
      VLR_HDF5_WRITE(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()));

  try {
    fill(file, layout, path);
  } catch (Error const&) {
    H5Fclose(file);
    throw;
  }
  VLR_HDF5_WRITE(H5Fclose(file));  // not by an owner: here the last bytes can fail
  std::vector<Extent> arrays;
  for (auto const& array : layout.arrays) arrays.push_back({array.offset, array.bytes()});
  write_seal(path, std::move(arrays));
}

Layout open(std::filesystem::path const& path) {
  check_seal(path);
  auto const file_bytes = InputFile(path).size();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  Properties access(VLR_HDF5_READ(H5Pcreate(H5P_FILE_ACCESS)));
#if H5_VERSION_GE(1, 10, 7)
  VLR_HDF5_READ(H5Pset_file_locking(access.get(), 0, 1));  // Lustre and NFS may have no locks
#endif
  hid_t const raw = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
  VLR_INPUT(raw >= 0, text(path.string(), " is not an HDF5 file, or it is cut or damaged"),
            "make or fetch the file again (h5ls FILE tells more)");
  File file(raw);

  Layout layout;
  read_attributes(file.get(), "", layout, path);
  H5G_info_t group{};
  VLR_HDF5_READ(H5Gget_info(file.get(), &group));
  VLR_INPUT(group.nlinks <= most_objects, text(path.string(), " holds ", group.nlinks, " objects"),
            "it is not a file of vlrerank");
  for (hsize_t i = 0; i < group.nlinks; ++i) {
    char name[128] = {};
    auto const length = VLR_HDF5_READ(H5Lget_name_by_idx(
        file.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT));
    H5L_info_t link{};
    VLR_INPUT(length < ssize_t(sizeof name) &&
                  H5Lget_info(file.get(), name, &link, H5P_DEFAULT) >= 0 &&
                  link.type == H5L_TYPE_HARD,
              text(path.string(), ": ", name, " is not a dataset of this file"),
              "it is not a file of vlrerank");
    hid_t const raw_set = H5Dopen2(file.get(), name, H5P_DEFAULT);
    VLR_INPUT(raw_set >= 0, text(path.string(), ": ", name, " is not a dataset, or damaged"),
              "it is damaged or not a file of vlrerank: make it again");
    Dataset id(raw_set);
    layout.arrays.push_back(read_array(id.get(), name, file_bytes, path));
    read_attributes(id.get(), name, layout, path);
  }
  return layout;
}

std::string versions() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return text(H5_VERS_MAJOR, ".", H5_VERS_MINOR, ".", H5_VERS_RELEASE, " (built), ", major, ".",
              minor, ".", release, " (running)");
}

}  // namespace vlrerank::hdf5
