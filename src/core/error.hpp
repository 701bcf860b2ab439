// core/error.hpp -- the one error type and the checks that throw it.
// Every message says what was seen, what the user can do about it, and where.
// Depends on nothing but the standard library, so that every room may use it.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vlrerank {

/// Joins its arguments as a stream would: text("rank ", 3, " of ", 8).
template <class... Parts>
std::string text(Parts const&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Exit codes of the program. 1, 110, 124-143 and 205 belong to mpirun and signals.
enum class Exit : int {
  done = 0,
  usage = 2,      // command line or configuration
  input = 3,      // data, model or checkpoint unusable
  diverged = 4,   // the numbers went bad
  internal = 70,  // a bug of ours
  io = 74,        // no space, EIO
  requeue = 75,   // stopped on request, with a checkpoint
  lost = 76,      // a rank hung or is lost
};

/// A failure that a person can act upon.
class Error : public std::runtime_error {
 public:
  /// @param code    what kind of failure this is: the program's exit code
  /// @param what    the value or state that was seen, with its unit
  /// @param remedy  what to change: an option, a file, a module to load
  /// @param where   "file:line" of our code, filled in by the macros below
  Error(Exit code, std::string_view what, std::string_view remedy, std::string_view where)
      : std::runtime_error(text(what, "\n  fix:   ", remedy, "\n  where: ", where)),
        code_(code),
        summary_(what) {}

  Exit code() const noexcept { return code_; }
  /// The first line alone, without remedy and place: for reports of many bad rows.
  std::string const& summary() const noexcept { return summary_; }

 private:
  Exit code_;
  std::string summary_;
};

}  // namespace vlrerank

#define VLR_LINE_TEXT_(line) #line
#define VLR_LINE_(line) VLR_LINE_TEXT_(line)
#define VLR_WHERE __FILE__ ":" VLR_LINE_(__LINE__)
/// Always on. `what` and `remedy` are evaluated only on failure.
#define VLR_CHECK_(code, condition, what, remedy)                   \
  do {                                                              \
    if (!(condition)) [[unlikely]]                                  \
      throw ::vlrerank::Error((code), (what), (remedy), VLR_WHERE); \
  } while (false)
/// A bug of ours, or of a caller: exit 70.
#define VLR_REQUIRE(condition, what, remedy) \
  VLR_CHECK_(::vlrerank::Exit::internal, condition, what, remedy)
/// Command line or configuration: exit 2.
#define VLR_USAGE(condition, what, remedy) \
  VLR_CHECK_(::vlrerank::Exit::usage, condition, what, remedy)
/// Data, model or checkpoint: exit 3.
#define VLR_INPUT(condition, what, remedy) \
  VLR_CHECK_(::vlrerank::Exit::input, condition, what, remedy)
/// Files and disks: exit 74.
#define VLR_IO(condition, what, remedy) VLR_CHECK_(::vlrerank::Exit::io, condition, what, remedy)
