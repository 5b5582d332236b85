// Fuse: all tokens become one, so that what follows sees the whole text.
#include "text/components/component.h"

namespace octavo {
namespace {

class FuseStage : public DecodeStage {
 public:
  void Push(std::string token, std::vector<std::string>&) override { text_ += token; }
  void Finish(std::vector<std::string>& out) override { out.push_back(std::move(text_)); }

 private:
  std::string text_;
};

class FuseDecoder : public Decoder {
 public:
  // In a stream the later stages are told instead, and take the parts as they come.
  void AddStages(DecodeMode& mode, DecodeStages& stages) const override {
    if (!mode.streaming) stages.push_back(std::make_unique<FuseStage>());
    mode.fused = true;
  }
};

}  // namespace

Result<std::unique_ptr<Decoder>> MakeFuseDecoder(const Value&, int) {
  return std::unique_ptr<Decoder>(new FuseDecoder);
}

}  // namespace octavo
