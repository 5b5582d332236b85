#include "text/dataset_reader.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <string_view>

namespace octavo {

namespace {

struct Format {
  std::string_view extension;
  DatasetOpener open;
};

constexpr std::array kFormats = {
    Format{".csv", OpenCsv},
    Format{".json", OpenJson},
    Format{".jsonl", OpenJsonLines},
};

bool IsParquet(const std::filesystem::path& path) {
  if (path.extension() == ".parquet") return true;
  std::array<char, 4> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return std::string_view(head.data(), head.size()) == "PAR1";
}

// As an argument for a shell.
std::string Quoted(const std::filesystem::path& path) {
  std::string quoted = "'";
  for (const char c : path.string()) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

Result<std::unique_ptr<DatasetReader>> OpenDataset(const std::filesystem::path& path) {
  if (IsParquet(path)) {
    auto converted = path;
    return Unsupported(
        fmt::format("{} is a Parquet file; convert it first: "
                    "tools/fetch-data convert {} -o {}",
                    path.string(), Quoted(path), Quoted(converted.replace_extension(".jsonl"))));
  }
  const auto unpacked = path.extension() == ".gz" ? path.stem() : path.filename();
  DatasetOpener open = OpenJsonLines;
  for (const Format& format : kFormats) {
    if (unpacked.extension() == format.extension) open = format.open;
  }
  Result<std::unique_ptr<DatasetReader>> reader = open(path);
  if (!reader.ok()) return reader.status().Annotate(path.string());
  return reader;
}

}  // namespace octavo
