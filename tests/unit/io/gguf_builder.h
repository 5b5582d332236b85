// Builds GGUF files for tests, well-formed or not.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::testing {

// Little-endian bytes, appended one after another.
class ByteString {
 public:
  template <typename T>
  ByteString& Number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    bytes_.append(bytes, sizeof(T));
    return *this;
  }
  ByteString& U32(uint32_t value) { return Number(value); }
  ByteString& U64(uint64_t value) { return Number(value); }
  ByteString& String(std::string_view text) { return U64(text.size()).Raw(text); }
  ByteString& Raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }
  ByteString& PadTo(size_t multiple) {
    bytes_.resize((bytes_.size() + multiple - 1) / multiple * multiple, '\0');
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Metadata and tensors in the order added; tensors are placed at multiples of 32.
class GgufBuilder {
 public:
  GgufBuilder& Text(std::string_view key, std::string_view value) {
    Key(key, 8).String(value);
    return *this;
  }
  GgufBuilder& U32(std::string_view key, uint32_t value) {
    Key(key, 4).U32(value);
    return *this;
  }
  GgufBuilder& F32(std::string_view key, float value) {
    Key(key, 6).Number(value);
    return *this;
  }
  GgufBuilder& Bool(std::string_view key, bool value) {
    Key(key, 7).Number(static_cast<uint8_t>(value));
    return *this;
  }
  GgufBuilder& Texts(std::string_view key, const std::vector<std::string>& values) {
    Key(key, 9).U32(8).U64(values.size());
    for (const std::string& value : values) metadata_.String(value);
    return *this;
  }
  GgufBuilder& I32s(std::string_view key, const std::vector<int32_t>& values) {
    Key(key, 9).U32(5).U64(values.size());
    for (const int32_t value : values) metadata_.Number(value);
    return *this;
  }
  GgufBuilder& F32s(std::string_view key, const std::vector<float>& values) {
    Key(key, 9).U32(6).U64(values.size());
    for (const float value : values) metadata_.Number(value);
    return *this;
  }
  // `dims` innermost first, as in the file.
  GgufBuilder& Tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                      std::string_view bytes) {
    table_.String(name).U32(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) table_.U64(dim);
    data_.PadTo(32);
    table_.U32(type).U64(data_.bytes().size());
    data_.Raw(bytes);
    ++tensors_;
    return *this;
  }

  std::string Build(uint32_t version = 3) const {
    ByteString file;
    file.Raw("GGUF").U32(version).U64(tensors_).U64(entries_);
    file.Raw(metadata_.bytes()).Raw(table_.bytes());
    return file.PadTo(32).Raw(data_.bytes()).bytes();
  }

 private:
  ByteString& Key(std::string_view key, uint32_t type) {
    ++entries_;
    return metadata_.String(key).U32(type);
  }

  ByteString metadata_, table_, data_;
  uint64_t entries_ = 0;
  uint64_t tensors_ = 0;
};

}  // namespace octavo::testing
