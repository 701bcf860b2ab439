// params/targets.hpp -- which linear modules get an adapter: PEFT's target_modules.
#pragma once

#include <string>
#include <vector>

namespace vlrerank {

/// What `--target-modules` or an adapter_config.json asks for.
struct Targets {
  std::vector<std::string> suffixes;  ///< a module named so, or ending in "." + so
  std::string regex;                  ///< when not empty: the whole name must match (PCRE2)
};

enum class Frozen { no, yes };

/// Reads the option: "all-linear" becomes the expression over the parts that are not frozen (text
/// decoder: seven linears; vision: qkv, proj, linear_fc1/2 of the blocks; aligner: linear_fc1/2 of
/// the mergers); one value with characters that no module name has is an expression; the rest are
/// suffixes. Throws Error (exit 2) when all-linear finds every part frozen.
Targets parse_targets(std::vector<std::string> const& option, Frozen llm, Frozen vision,
                      Frozen aligner);

/// Names that match, in the order given. Throws Error (exit 2) when a suffix or the expression
/// matches none, naming it, or the expression is malformed.
std::vector<std::string> matching_modules(Targets const& targets,
                                          std::vector<std::string> const& modules);

}  // namespace vlrerank
