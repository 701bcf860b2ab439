// config/rows.hpp -- groups of option rows that the tables of config/table.cpp are made of.
#pragma once

#include <string>
#include <vector>

#include "config/option.hpp"
#include "config/settings.hpp"

namespace vlrerank {

using Rows = std::vector<Option>;

/// The rows with their heading.
Rows grouped(std::string const& group, Rows rows);

// config/data_rows.cpp: what is read, and with which model.
Option model_row(Settings& s);
Option dataset_row(Settings& s);
Rows model_rows(Settings& s);
/// What decides which tokens and pixels a pair becomes.
Rows prompt_rows(Settings& s);
Rows row_rows(Settings& s);
Rows training_data_rows(Settings& s);

// config/training_rows.cpp: how it is trained.
Rows tuning_rows(Settings& s);
Rows loss_rows(Settings& s);
Rows optimizer_rows(Settings& s);
Rows batch_rows(Settings& s);
Rows run_rows(Settings& s);
Option cache_row(Settings& s);
Option cutoffs_row(Settings& s);
Option bootstrap_row(Settings& s);
Rows evaluation_rows(Settings& s);
Rows parallel_rows(Settings& s);

}  // namespace vlrerank
