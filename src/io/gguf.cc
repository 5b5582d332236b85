#include "io/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "base/json.h"

namespace octavo {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are stored");

// clang-format off
constexpr std::array kTypes = {
    GgmlType{0, "F32", 1, 4},         GgmlType{1, "F16", 1, 2},
    GgmlType{2, "Q4_0", 32, 18},      GgmlType{3, "Q4_1", 32, 20},
    GgmlType{6, "Q5_0", 32, 22},      GgmlType{7, "Q5_1", 32, 24},
    GgmlType{8, "Q8_0", 32, 34},      GgmlType{9, "Q8_1", 32, 36},
    GgmlType{10, "Q2_K", 256, 84},    GgmlType{11, "Q3_K", 256, 110},
    GgmlType{12, "Q4_K", 256, 144},   GgmlType{13, "Q5_K", 256, 176},
    GgmlType{14, "Q6_K", 256, 210},   GgmlType{15, "Q8_K", 256, 292},
    GgmlType{16, "IQ2_XXS", 256, 66}, GgmlType{17, "IQ2_XS", 256, 74},
    GgmlType{18, "IQ3_XXS", 256, 98}, GgmlType{19, "IQ1_S", 256, 50},
    GgmlType{20, "IQ4_NL", 32, 18},   GgmlType{21, "IQ3_S", 256, 110},
    GgmlType{22, "IQ2_S", 256, 82},   GgmlType{23, "IQ4_XS", 256, 136},
    GgmlType{24, "I8", 1, 1},         GgmlType{25, "I16", 1, 2},
    GgmlType{26, "I32", 1, 4},        GgmlType{27, "I64", 1, 8},
    GgmlType{28, "F64", 1, 8},        GgmlType{29, "IQ1_M", 256, 56},
    GgmlType{30, "BF16", 1, 2},       GgmlType{34, "TQ1_0", 256, 54},
    GgmlType{35, "TQ2_0", 256, 66},   GgmlType{39, "MXFP4", 32, 17},
    GgmlType{40, "NVFP4", 64, 36},    GgmlType{41, "Q1_0", 128, 18},
};
// clang-format on

constexpr uint64_t kMaxDims = 8;  // ggml has 4; more is not wrong, but a sign of garbage
constexpr int kMaxArrayDepth = 4;
constexpr int64_t kMaxValues = 1 << 23;     // metadata values: some 300 MB as Values
constexpr uint64_t kMinEntryBytes = 8 + 4;  // a name's length and a type

enum MetadataType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// Walks through the file; every read is checked against what is left.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t left() const { return bytes_.size() - position_; }

  template <typename T>
  Result<T> Number() {
    if (left() < sizeof(T)) return Truncated(sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  Result<std::string> String() {
    OCTAVO_ASSIGN_OR_RETURN(const uint64_t length, Number<uint64_t>());
    if (length > left()) return Truncated(length);
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + position_, length);
    position_ += length;
    return text;
  }

 private:
  Status Truncated(uint64_t wanted) const {
    return CorruptFile(
        fmt::format("byte {}: {} bytes expected, {} left", position_, wanted, left()));
  }

  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes), cursor_(bytes) {}

  Status ReadAll() {
    uint64_t tensor_count = 0;
    uint64_t entry_count = 0;
    OCTAVO_RETURN_IF_ERROR(ReadCounts(tensor_count, entry_count));
    OCTAVO_RETURN_IF_ERROR(ReadMetadata(entry_count));
    OCTAVO_RETURN_IF_ERROR(ReadTensorTable(tensor_count));
    return PlaceTensors();
  }

  Value TakeMetadata() { return std::move(metadata_); }
  std::vector<GgufTensor> TakeTensors() { return std::move(tensors_); }

 private:
  Status ReadCounts(uint64_t& tensor_count, uint64_t& entry_count);
  Status ReadMetadata(uint64_t count);
  Result<Value> ReadValue(uint32_t type, int depth);
  Result<Value> ReadArray(int depth);
  Status ReadTensorTable(uint64_t count);
  Status ReadTensor(GgufTensor& tensor, uint64_t& offset);
  Status PlaceTensors();
  Result<uint64_t> Alignment() const;

  std::span<const std::byte> bytes_;
  Cursor cursor_;
  Value metadata_ = Value::MakeObject();
  std::vector<GgufTensor> tensors_;
  std::vector<uint64_t> offsets_;  // of tensors_, in the data area
  int64_t values_ = 0;
};

Status Reader::ReadCounts(uint64_t& tensor_count, uint64_t& entry_count) {
  OCTAVO_ASSIGN_OR_RETURN(const uint32_t magic, cursor_.Number<uint32_t>());
  if (magic != 0x46554747) return CorruptFile("does not begin with \"GGUF\": this is no GGUF file");
  OCTAVO_ASSIGN_OR_RETURN(const uint32_t version, cursor_.Number<uint32_t>());
  if (version != 2 && version != 3) {
    if ((version & 0xFFFF) == 0) return Unsupported("a big-endian GGUF file");
    return Unsupported(fmt::format("GGUF version {}, expected 2 or 3", version));
  }
  OCTAVO_ASSIGN_OR_RETURN(tensor_count, cursor_.Number<uint64_t>());
  OCTAVO_ASSIGN_OR_RETURN(entry_count, cursor_.Number<uint64_t>());
  for (const uint64_t count : {tensor_count, entry_count}) {
    if (count > cursor_.left() / kMinEntryBytes) {
      return CorruptFile(fmt::format("{} entries cannot fit in {} bytes", count, cursor_.left()));
    }
  }
  return OkStatus();
}

Status Reader::ReadMetadata(uint64_t count) {
  std::unordered_set<std::string> keys;
  for (uint64_t i = 0; i < count; ++i) {
    Result<std::string> key = cursor_.String();
    if (!key.ok()) return key.status().Annotate(fmt::format("metadata key {}", i));
    if (!keys.insert(*key).second) {
      return CorruptFile("metadata key " + JsonString(*key) + " occurs twice");
    }
    Result<uint32_t> type = cursor_.Number<uint32_t>();
    if (!type.ok()) return type.status().Annotate(*key);
    Result<Value> value = ReadValue(*type, 0);
    if (!value.ok()) return value.status().Annotate(*key);
    metadata_.as_object().emplace_back(std::move(*key), std::move(*value));
  }
  return OkStatus();
}

template <typename T>
Result<Value> ReadInt(Cursor& cursor) {
  OCTAVO_ASSIGN_OR_RETURN(const T value, cursor.Number<T>());
  return Value(static_cast<int64_t>(value));
}

Result<Value> Reader::ReadValue(uint32_t type, int depth) {
  if (++values_ > kMaxValues) {
    return CorruptFile(fmt::format("more than {} metadata values", kMaxValues));
  }
  switch (type) {
    case kUint8:
      return ReadInt<uint8_t>(cursor_);
    case kInt8:
      return ReadInt<int8_t>(cursor_);
    case kUint16:
      return ReadInt<uint16_t>(cursor_);
    case kInt16:
      return ReadInt<int16_t>(cursor_);
    case kUint32:
      return ReadInt<uint32_t>(cursor_);
    case kInt32:
      return ReadInt<int32_t>(cursor_);
    case kInt64:
      return ReadInt<int64_t>(cursor_);
    case kUint64: {
      OCTAVO_ASSIGN_OR_RETURN(const uint64_t value, cursor_.Number<uint64_t>());
      if (value > static_cast<uint64_t>(INT64_MAX)) return Value(static_cast<double>(value));
      return Value(static_cast<int64_t>(value));
    }
    case kFloat32: {
      OCTAVO_ASSIGN_OR_RETURN(const float value, cursor_.Number<float>());
      return Value(static_cast<double>(value));
    }
    case kFloat64: {
      OCTAVO_ASSIGN_OR_RETURN(const double value, cursor_.Number<double>());
      return Value(value);
    }
    case kBool: {
      OCTAVO_ASSIGN_OR_RETURN(const uint8_t value, cursor_.Number<uint8_t>());
      if (value > 1) return CorruptFile(fmt::format("{} is no boolean", value));
      return Value(value == 1);
    }
    case kString: {
      OCTAVO_ASSIGN_OR_RETURN(std::string value, cursor_.String());
      return Value(std::move(value));
    }
    case kArray:
      return ReadArray(depth + 1);
    default:
      return CorruptFile(fmt::format("unknown metadata type {}", type));
  }
}

Result<Value> Reader::ReadArray(int depth) {
  if (depth > kMaxArrayDepth) {
    return CorruptFile(fmt::format("arrays nested deeper than {}", kMaxArrayDepth));
  }
  OCTAVO_ASSIGN_OR_RETURN(const uint32_t type, cursor_.Number<uint32_t>());
  OCTAVO_ASSIGN_OR_RETURN(const uint64_t count, cursor_.Number<uint64_t>());
  if (count > cursor_.left()) {  // an element has at least one byte
    return CorruptFile(
        fmt::format("an array of {} elements, but {} bytes left", count, cursor_.left()));
  }
  Value::Array array;
  for (uint64_t i = 0; i < count; ++i) {
    OCTAVO_ASSIGN_OR_RETURN(Value value, ReadValue(type, depth));
    array.push_back(std::move(value));
  }
  return Value(std::move(array));
}

Status Reader::ReadTensor(GgufTensor& tensor, uint64_t& offset) {
  OCTAVO_ASSIGN_OR_RETURN(const uint32_t dims, cursor_.Number<uint32_t>());
  if (dims > kMaxDims) {
    return CorruptFile(fmt::format("{} dimensions, at most {} are read", dims, kMaxDims));
  }
  for (uint32_t i = 0; i < dims; ++i) {
    OCTAVO_ASSIGN_OR_RETURN(const uint64_t size, cursor_.Number<uint64_t>());
    if (size > static_cast<uint64_t>(INT64_MAX)) {
      return CorruptFile(fmt::format("a dimension of {}", size));
    }
    tensor.shape.push_back(static_cast<int64_t>(size));
  }
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  OCTAVO_ASSIGN_OR_RETURN(const uint32_t type, cursor_.Number<uint32_t>());
  tensor.type = FindGgmlType(type);
  if (tensor.type == nullptr) return Unsupported(fmt::format("unknown ggml type {}", type));
  OCTAVO_ASSIGN_OR_RETURN(offset, cursor_.Number<uint64_t>());
  return OkStatus();
}

Status Reader::ReadTensorTable(uint64_t count) {
  std::unordered_set<std::string> names;
  for (uint64_t i = 0; i < count; ++i) {
    GgufTensor tensor;
    Result<std::string> name = cursor_.String();
    if (!name.ok()) return name.status().Annotate(fmt::format("name of tensor {}", i));
    if (!names.insert(*name).second) return CorruptFile("tensor " + *name + " occurs twice");
    tensor.name = std::move(*name);
    uint64_t offset = 0;
    const Status status = ReadTensor(tensor, offset);
    if (!status.ok()) return status.Annotate("tensor " + tensor.name);
    tensors_.push_back(std::move(tensor));
    offsets_.push_back(offset);
  }
  return OkStatus();
}

Result<uint64_t> Reader::Alignment() const {
  const Value* value = metadata_.Find("general.alignment");
  if (value == nullptr) return 32;
  if (!value->is_int() || value->as_int() < 1 || value->as_int() > (int64_t{1} << 30) ||
      !std::has_single_bit(static_cast<uint64_t>(value->as_int()))) {
    return CorruptFile("general.alignment is " + WriteJson(*value).substr(0, 40) +
                       ", expected a power of two");
  }
  return static_cast<uint64_t>(value->as_int());
}

// The bytes of a tensor's blocks, or nothing where its sizes make no sense.
Result<int64_t> BlockBytes(const GgufTensor& tensor) {
  OCTAVO_ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(tensor.shape));
  const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % tensor.type->block_elements != 0) {
    return CorruptFile(fmt::format("rows of {} elements, expected a multiple of {} for {}", row,
                                   tensor.type->block_elements, tensor.type->name));
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements / tensor.type->block_elements, tensor.type->block_bytes,
                             &bytes)) {
    return CorruptFile("shape " + ShapeString(tensor.shape) + " is too large");
  }
  return bytes;
}

Status Reader::PlaceTensors() {
  if (tensors_.empty()) return OkStatus();
  OCTAVO_ASSIGN_OR_RETURN(const uint64_t alignment, Alignment());
  const uint64_t start = (cursor_.position() + alignment - 1) / alignment * alignment;
  const uint64_t data_bytes = start > bytes_.size() ? 0 : bytes_.size() - start;
  struct Part {
    uint64_t begin, end;
    const GgufTensor* tensor;
  };
  std::vector<Part> parts;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    GgufTensor& tensor = tensors_[i];
    Result<int64_t> size = BlockBytes(tensor);
    if (!size.ok()) return size.status().Annotate("tensor " + tensor.name);
    const auto bytes = static_cast<uint64_t>(*size);
    const uint64_t offset = offsets_[i];
    if (offset % alignment != 0) {
      return CorruptFile(fmt::format("tensor {}: offset {} is no multiple of the alignment {}",
                                     tensor.name, offset, alignment));
    }
    if (offset > data_bytes || bytes > data_bytes - offset) {
      return CorruptFile(
          fmt::format("tensor {}: {} bytes at offset {}, but the data has {}: the "
                      "file is truncated",
                      tensor.name, bytes, offset, data_bytes));
    }
    if (bytes == 0) continue;
    tensor.bytes = bytes_.subspan(start + offset, bytes);
    parts.push_back({offset, offset + bytes, &tensor});
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].begin < parts[i - 1].end) {
      return CorruptFile(fmt::format("tensor {} overlaps tensor {}", parts[i].tensor->name,
                                     parts[i - 1].tensor->name));
    }
  }
  return OkStatus();
}

}  // namespace

const GgmlType* FindGgmlType(uint32_t id) {
  for (const GgmlType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

Result<GgufFile> GgufFile::Open(const std::filesystem::path& path) {
  GgufFile opened;
  OCTAVO_ASSIGN_OR_RETURN(opened.file_, MappedFile::Open(path));
  Reader reader(opened.file_->bytes());
  const Status status = reader.ReadAll();
  if (!status.ok()) return status.Annotate(path.string());
  opened.metadata_ = reader.TakeMetadata();
  opened.tensors_ = reader.TakeTensors();
  return opened;
}

}  // namespace octavo
