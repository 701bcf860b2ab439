// data/row_forms.hpp -- the six row forms that are accepted, each turned into a sample.
// Internal to the room; parse_row() in rows.hpp is what others call.
#pragma once

#include "data/row_parts.hpp"

namespace vlrerank::row_parts {

/// Fills query, documents, instruction and form of `sample` from a row of any known form.
/// Throws the Error that rejects the row, with the keys found and those expected if the form is
/// unknown.
void read_row(json const& row, Context const& context, Sample& sample);

}  // namespace vlrerank::row_parts
