// A GGUF file: metadata as a Value and tensors as raw blocks.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "io/mapped_file.h"
#include "tensor/shape.h"

namespace octavo {

// A block format of ggml: the number in the file, its name, and how many elements and bytes a block
// has.
struct GgmlType {
  uint32_t id;
  std::string_view name;
  int64_t block_elements;
  int64_t block_bytes;
};

// Null for an unknown number.
const GgmlType* FindGgmlType(uint32_t id);

struct GgufTensor {
  std::string name;
  const GgmlType* type = nullptr;
  Shape shape;  // outermost first (the file has it innermost first)
  std::span<const std::byte> bytes;
};

class GgufFile {
 public:
  // Versions 2 and 3, little-endian. CorruptFile for anything that does not fit the file: counts,
  // lengths, offsets, types.
  static Result<GgufFile> Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_->path(); }
  // One object: key -> value; arrays of numbers and strings as arrays.
  const Value& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  // Tells the system that the bytes of this tensor are not needed again soon.
  void Forget(const GgufTensor& tensor) const { file_->Forget(tensor.bytes); }

 private:
  std::shared_ptr<const MappedFile> file_;
  Value metadata_;
  std::vector<GgufTensor> tensors_;
};

}  // namespace octavo
