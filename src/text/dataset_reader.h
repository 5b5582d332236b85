// The rows of a data file, one after another: JSON lines, a JSON array, or CSV.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/value.h"

namespace octavo {

class DatasetReader {
 public:
  virtual ~DatasetReader() = default;
  // Goes to the next row; false behind the last one.
  virtual Result<bool> Next() = 0;
  // The row, an object. Only for rows that are used, as it costs far more than Next.
  virtual Result<Value> Row() const = 0;
  // "line 3", where the row begins.
  virtual std::string Place() const = 0;
};

// The format by the name, with or without .gz: .csv, .json (an array, or lines), else JSON lines.
// Errors name the file. Unsupported for Parquet, with the command that converts it.
Result<std::unique_ptr<DatasetReader>> OpenDataset(const std::filesystem::path& path);

// The formats, for OpenDataset.
using DatasetOpener = Result<std::unique_ptr<DatasetReader>> (*)(const std::filesystem::path& path);
Result<std::unique_ptr<DatasetReader>> OpenJsonLines(const std::filesystem::path& path);
Result<std::unique_ptr<DatasetReader>> OpenJson(const std::filesystem::path& path);
Result<std::unique_ptr<DatasetReader>> OpenCsv(const std::filesystem::path& path);

}  // namespace octavo
