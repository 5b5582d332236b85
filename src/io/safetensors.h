// One safetensors file: its header checked in full, its tensors as views into the mapped file.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/mapped_file.h"
#include "tensor/tensor.h"

namespace octavo {

// Layout: u64 little-endian N, N bytes of JSON header (spaces may follow it), then the data.
// Entries may come in any order, but must cover the data without gap or overlap, inside the file.
class SafetensorsFile {
 public:
  // CorruptFile (naming file, tensor, expected and found) for: a header that is truncated, longer
  // than 100 MB (the format's limit), not JSON or of wrong types, with a name twice; offsets that
  // overlap, leave gaps, or do not fit shape and dtype; a file shorter or longer than its header
  // says.
  static Result<SafetensorsFile> Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_->path(); }
  // Sorted by name.
  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }

  // NotFound names the file and the nearest name.
  Result<TensorView> Find(std::string_view name) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Writes one file at once (small files: golden tensors, logits), byte for byte as the safetensors
// library does: tensors by dtype, widest first, then by name. InvalidArgument for a name given
// twice.
Status WriteSafetensors(const std::filesystem::path& path,
                        const std::vector<std::pair<std::string, TensorView>>& tensors,
                        const std::map<std::string, std::string>& metadata = {});

}  // namespace octavo
