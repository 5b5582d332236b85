#include "io/safetensors.h"

#include <utility>

#include "base/file.h"
#include "base/suggest.h"
#include "io/safetensors_header.h"

namespace octavo {

Result<SafetensorsFile> SafetensorsFile::Open(const std::filesystem::path& path) {
  SafetensorsFile opened;
  OCTAVO_ASSIGN_OR_RETURN(opened.file_, MappedFile::Open(path));
  OCTAVO_ASSIGN_OR_RETURN(SafetensorsHeader header,
                          ParseSafetensorsHeader(opened.file_->bytes(), path.string()));
  const std::byte* data = opened.file_->bytes().data() + header.data_offset;
  for (SafetensorsEntry& entry : header.entries) {
    opened.tensors_.emplace(std::move(entry.name), TensorView{.dtype = entry.dtype,
                                                              .shape = std::move(entry.shape),
                                                              .bytes = data + entry.begin});
  }
  opened.metadata_ = std::move(header.metadata);
  return opened;
}

Result<TensorView> SafetensorsFile::Find(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, view] : tensors_) names.push_back(known);
  return NotFound(path().string() + ": no tensor " + std::string(name) + DidYouMean(name, names));
}

Status WriteSafetensors(const std::filesystem::path& path,
                        const std::vector<std::pair<std::string, TensorView>>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, TensorView> views;
  for (const auto& [name, view] : tensors) {
    if (!views.emplace(name, view).second) {
      return InvalidArgument(path.string() + ": tensor " + name + " is given twice");
    }
    entries.push_back({.name = name, .dtype = view.dtype, .shape = view.shape});
  }
  const int64_t data_bytes = LayOutSafetensors(entries);
  std::string content = WriteSafetensorsHeader(entries, metadata);
  content.reserve(content.size() + static_cast<size_t>(data_bytes));
  for (const SafetensorsEntry& entry : entries) {
    const TensorView& view = views.at(entry.name);
    content.append(reinterpret_cast<const char*>(view.bytes),
                   static_cast<size_t>(view.num_bytes()));
  }
  return WriteFileAtomically(path, content);
}

}  // namespace octavo
