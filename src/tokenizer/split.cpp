// tokenizer/split.cpp -- the general splitter, on PCRE2. The only file that includes pcre2.h.
#include "tokenizer/split.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/error.hpp"
#include "core/handle.hpp"

namespace vlrerank {
namespace {

void free_code(pcre2_code* code) noexcept {
  pcre2_code_free(code);
}
void free_match(pcre2_match_data* match) noexcept {
  pcre2_match_data_free(match);
}

std::string pcre_message(int code) {
  PCRE2_UCHAR buffer[160];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<char const*>(buffer);
}

}  // namespace

struct SplitPattern::Code {
  Handle<pcre2_code*, free_code> compiled;
};

SplitPattern::SplitPattern(std::string const& pattern) : code_(std::make_unique<Code>()) {
  int problem = 0;
  PCRE2_SIZE offset = 0;
  auto* const compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &problem, &offset, nullptr);
  VLR_INPUT(compiled != nullptr,
            text("the pre-tokeniser's expression is not understood at character ", offset, ": ",
                 pcre_message(problem)),
            "use the tokenizer.json that came with the model");
  code_->compiled = Handle<pcre2_code*, free_code>(compiled);
  pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
}

SplitPattern::~SplitPattern() = default;
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;

void SplitPattern::split(std::string_view text_in, std::vector<std::string_view>& pieces) const {
  auto* const compiled = code_->compiled.get();
  Handle<pcre2_match_data*, free_match> const match(
      pcre2_match_data_create_from_pattern(compiled, nullptr));
  std::size_t done = 0;  // everything before stands in `pieces`
  std::size_t search = 0;
  while (search < text_in.size()) {
    auto const found =
        pcre2_match(compiled, reinterpret_cast<PCRE2_SPTR>(text_in.data()), text_in.size(), search,
                    PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    if (found == PCRE2_ERROR_NOMATCH) break;
    VLR_REQUIRE(found > 0, text("splitting text failed: ", pcre_message(found)),
                "shorten the text, or use the tokenizer.json that came with the model");
    auto const* const span = pcre2_get_ovector_pointer(match.get());
    if (span[1] == span[0]) {  // an empty match: go on behind the next character
      search += decode_utf8(text_in.data() + search).bytes;
      continue;
    }
    if (span[0] > done) pieces.push_back(text_in.substr(done, span[0] - done));
    pieces.push_back(text_in.substr(span[0], span[1] - span[0]));
    done = search = span[1];
  }
  if (done < text_in.size()) pieces.push_back(text_in.substr(done));
}

}  // namespace vlrerank
