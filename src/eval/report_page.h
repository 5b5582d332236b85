// The report: one HTML page that needs nothing else, made from a comparison.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"
#include "eval/comparison.h"

namespace octavo {

// Well-formed, without links to other files; all text of models and files is escaped.
std::string ReportPage(const Comparison& comparison);

// Writes the page beside its place and renames it. AlreadyExists for a file that is there, unless
// `force`.
Status WriteReportPage(const std::filesystem::path& path, const Comparison& comparison, bool force);

// The same refusal, for before the work begins.
Status CheckReportPath(const std::filesystem::path& path, bool force);

}  // namespace octavo
