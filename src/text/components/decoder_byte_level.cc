// ByteLevel: visible characters back to the bytes they stand for.
#include "text/components/byte_level.h"
#include "text/components/component.h"
#include "text/unicode.h"

namespace octavo {
namespace {

// A token with any other character stands for itself.
std::string BytesOf(std::string token) {
  std::string bytes;
  for (size_t i = 0; i < token.size(); i += Utf8Length(token[i])) {
    const int byte = ByteLevelByte(DecodeUtf8(token, i));
    if (byte < 0) return token;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

class ByteLevelStage : public DecodeStage {
 public:
  explicit ByteLevelStage(bool streaming) : streaming_(streaming) {}
  void Push(std::string token, std::vector<std::string>& out) override {
    std::string bytes = BytesOf(std::move(token));
    if (streaming_) {
      out.push_back(std::move(bytes));
    } else {
      bytes_ += bytes;
    }
  }
  void Finish(std::vector<std::string>& out) override {
    if (!streaming_) out.push_back(LossyUtf8(bytes_));
  }

 private:
  bool streaming_;
  std::string bytes_;
};

class ByteLevelDecoder : public Decoder {
 public:
  void AddStages(DecodeMode& mode, DecodeStages& stages) const override {
    stages.push_back(std::make_unique<ByteLevelStage>(mode.streaming));
    mode.fused = true;
  }
};

}  // namespace

Result<std::unique_ptr<Decoder>> MakeByteLevelDecoder(const Value&, int) {
  return std::unique_ptr<Decoder>(new ByteLevelDecoder);
}

}  // namespace octavo
