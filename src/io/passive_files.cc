#include "io/passive_files.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace octavo {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemplateFolder = "additional_chat_templates";

constexpr std::array<std::string_view, 14> kWeightSuffixes = {
    ".safetensors", ".bin",  ".pt",        ".pth", ".ckpt", ".msgpack",  ".h5",
    ".gguf",        ".onnx", ".onnx_data", ".npz", ".ot",   ".pdparams", ".unfinished"};

bool IsPassive(std::string_view name) {
  if (name.starts_with('.') || name.starts_with("README")) return false;
  if (name == "config.json" || name == "recipe.yaml" || name.ends_with(".index.json")) return false;
  return std::none_of(kWeightSuffixes.begin(), kWeightSuffixes.end(),
                      [&](std::string_view suffix) { return name.ends_with(suffix); });
}

Status Failed(const fs::path& path, std::string_view what, const std::error_code& error) {
  return IoError(path.string() + ": " + std::string(what) + ": " + error.message());
}

// The passive files of one folder, by name.
Result<std::vector<std::string>> ListPassive(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    std::error_code ignored;
    if (IsPassive(name) && fs::is_regular_file(at->path(), ignored))
      names.push_back(std::move(name));
  }
  if (error) return Failed(folder, "cannot list", error);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Result<std::vector<std::string>> CopyPassiveFiles(const fs::path& source,
                                                  const fs::path& destination) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<std::string> names, ListPassive(source));
  std::error_code error;
  if (fs::is_directory(source / kTemplateFolder, error)) {
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<std::string> inner,
                            ListPassive(source / kTemplateFolder));
    for (const std::string& name : inner)
      names.push_back(std::string(kTemplateFolder) + "/" + name);
    std::sort(names.begin(), names.end());
    fs::create_directories(destination / kTemplateFolder, error);
    if (error) return Failed(destination / kTemplateFolder, "cannot create", error);
  }
  for (const std::string& name : names) {
    fs::copy_file(source / name, destination / name, fs::copy_options::overwrite_existing, error);
    if (error) return Failed(destination / name, "cannot copy", error);
    // A copy of a read-only file must not become one that the next run cannot replace.
    fs::permissions(destination / name, fs::perms::owner_write, fs::perm_options::add, error);
  }
  return names;
}

}  // namespace octavo
