#include "io/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/suggest.h"

namespace octavo {

namespace {

namespace fs = std::filesystem;

// In the index, of tensors that no file has.
constexpr size_t kDerived = std::numeric_limits<size_t>::max();

constexpr std::string_view kIndexName = "model.safetensors.index.json";

// The names of the folder's files that end with `suffix`, sorted.
std::vector<std::string> FilesEndingWith(const fs::path& folder, std::string_view suffix) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name.ends_with(suffix)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// What to do about a folder without safetensors, from what lies there instead.
std::string WeightsAdvice(const fs::path& folder) {
  if (!FilesEndingWith(folder, ".gguf").empty()) {
    return "it holds a .gguf file: convert it with `octavo import`";
  }
  for (const std::string_view suffix : {".bin", ".pt", ".pth"}) {
    if (!FilesEndingWith(folder, suffix).empty()) {
      return fmt::format("it holds {} weights: save them as safetensors first", suffix);
    }
  }
  return "expected model.safetensors, or shards with " + std::string(kIndexName);
}

Status CheckFolder(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return NotFound(folder.string() + ": no such folder");
  if (fs::is_directory(folder, error)) return OkStatus();
  if (folder.extension() == ".gguf") {
    return InvalidArgument(folder.string() +
                           ": is a GGUF file, expected a Hugging Face folder: convert it with "
                           "`octavo import`");
  }
  return InvalidArgument(folder.string() +
                         ": is a file, expected a Hugging Face folder (config.json and "
                         "*.safetensors)");
}

Result<Value> ReadJsonObject(const fs::path& path) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  OCTAVO_ASSIGN_OR_RETURN(Value value, ParseJson(text, path.string()));
  if (!value.is_object()) {
    return CorruptFile(
        fmt::format("{}: is {}, expected an object", path.string(), value.type_name()));
  }
  return value;
}

using WeightMap = std::map<std::string, std::string>;  // tensor -> file name

Result<WeightMap> ReadIndex(const fs::path& path) {
  OCTAVO_ASSIGN_OR_RETURN(const Value index, ReadJsonObject(path));
  const Value* entries = index.Find("weight_map");
  if (entries == nullptr || !entries->is_object()) {
    return CorruptFile(path.string() + ": weight_map is missing or no object");
  }
  WeightMap weight_map;
  for (const auto& [tensor, file] : entries->as_object()) {
    if (!file.is_string()) {
      return CorruptFile(fmt::format("{}: tensor {}: the file is {}, expected a string",
                                     path.string(), tensor, file.type_name()));
    }
    const std::string& name = file.as_string();
    if (name.empty() || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      return CorruptFile(fmt::format("{}: tensor {}: {} is no name of a file in this folder",
                                     path.string(), tensor, JsonString(name)));
    }
    weight_map.emplace(tensor, name);
  }
  return weight_map;
}

// The one file of a folder without index.
Result<std::string> SingleFile(const fs::path& folder) {
  const std::vector<std::string> names = FilesEndingWith(folder, ".safetensors");
  if (names.empty()) {
    return NotFound(folder.string() + ": no safetensors weights; " + WeightsAdvice(folder));
  }
  if (names.size() == 1) return names.front();
  if (std::find(names.begin(), names.end(), "model.safetensors") != names.end()) {
    return std::string("model.safetensors");
  }
  return CorruptFile(fmt::format("{}: {} safetensors files ({}, ...) but no {}", folder.string(),
                                 names.size(), names.front(), kIndexName));
}

}  // namespace

struct Checkpoint::Derived {
  struct Entry {
    MakeTensor make;
    Tensor tensor;  // empty: not in memory
  };
  std::mutex mutex;
  std::map<std::string, Entry, std::less<>> tensors;
};

Result<Checkpoint> Checkpoint::Open(const fs::path& folder) {
  OCTAVO_RETURN_IF_ERROR(CheckFolder(folder));
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  std::error_code error;
  if (!fs::exists(folder / "config.json", error)) {
    return NotFound(folder.string() + ": no config.json; " +
                    (FilesEndingWith(folder, ".safetensors").empty()
                         ? WeightsAdvice(folder)
                         : "copy it from the model's repository"));
  }
  OCTAVO_ASSIGN_OR_RETURN(checkpoint.config_, ReadJsonObject(folder / "config.json"));

  WeightMap weight_map;
  std::set<std::string> file_names;
  if (fs::exists(folder / kIndexName, error)) {
    OCTAVO_ASSIGN_OR_RETURN(weight_map, ReadIndex(folder / kIndexName));
    for (const auto& [tensor, file] : weight_map) file_names.insert(file);
  } else {
    OCTAVO_ASSIGN_OR_RETURN(std::string name, SingleFile(folder));
    file_names.insert(std::move(name));
  }

  for (const std::string& name : file_names) {
    Result<SafetensorsFile> file = SafetensorsFile::Open(folder / name);
    if (!file.ok()) {
      if (weight_map.empty()) return file.status();
      return file.status().Annotate(std::string(kIndexName) + " names a shard");
    }
    for (const auto& [tensor, view] : file->tensors()) {
      const auto [at, added] = checkpoint.index_.emplace(tensor, checkpoint.files_.size());
      if (!added) {
        return CorruptFile(fmt::format("{}: tensor {} is in {} and in {}", folder.string(), tensor,
                                       checkpoint.files_[at->second].path().filename().string(),
                                       name));
      }
    }
    checkpoint.files_.push_back(std::move(file).value());
  }

  for (const auto& [tensor, file] : weight_map) {
    const auto found = checkpoint.index_.find(tensor);
    if (found == checkpoint.index_.end() ||
        checkpoint.files_[found->second].path().filename() != file) {
      return CorruptFile(fmt::format(
          "{}: tensor {} is not in {}, where {} has it{}", folder.string(), tensor, file,
          kIndexName,
          found == checkpoint.index_.end() ? "" : ", but in " + checkpoint.FileOf(tensor)));
    }
  }
  return checkpoint;
}

std::vector<std::string> Checkpoint::Names() const {
  std::vector<std::string> names;
  names.reserve(index_.size());
  for (const auto& [name, file] : index_) names.push_back(name);
  return names;
}

Result<TensorView> Checkpoint::Find(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) {
    return NotFound(folder_.string() + ": no tensor " + std::string(name) +
                    DidYouMean(name, Names()));
  }
  if (found->second != kDerived) return files_[found->second].Find(name);
  const std::lock_guard lock(derived_->mutex);
  Derived::Entry& entry = derived_->tensors.find(name)->second;
  if (entry.tensor.empty()) {
    OCTAVO_ASSIGN_OR_RETURN(entry.tensor, entry.make());
  }
  return entry.tensor.view();
}

void Checkpoint::Replace(const std::vector<std::string>& others, const std::string& name,
                         MakeTensor make) {
  for (const std::string& other : others) index_.erase(other);
  // A copy of this object keeps its own.
  if (derived_ == nullptr || derived_.use_count() > 1) {
    auto derived = std::make_shared<Derived>();
    if (derived_ != nullptr) {
      for (const auto& [derived_name, entry] : derived_->tensors)
        derived->tensors[derived_name].make = entry.make;
    }
    derived_ = std::move(derived);
  }
  derived_->tensors[name].make = std::move(make);
  index_[name] = kDerived;
}

std::string Checkpoint::FileOf(std::string_view name) const {
  const auto found = index_.find(name);
  const bool in_file = found != index_.end() && found->second != kDerived;
  return in_file ? files_[found->second].path().filename().string() : "";
}

void Checkpoint::Forget(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) return;
  if (found->second == kDerived) {
    const std::lock_guard lock(derived_->mutex);
    derived_->tensors.find(name)->second.tensor = Tensor();
    return;
  }
  const SafetensorsFile& file = files_[found->second];
  const TensorView& view = file.tensors().find(name)->second;
  file.file()->Forget({view.bytes, static_cast<size_t>(view.num_bytes())});
}

int64_t Checkpoint::total_bytes() const {
  int64_t total = 0;
  for (const SafetensorsFile& file : files_) {
    for (const auto& [name, view] : file.tensors()) total += view.num_bytes();
  }
  return total;
}

}  // namespace octavo
