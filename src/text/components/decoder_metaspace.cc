// Metaspace: the visible character back to a space; of the first token it is dropped where encoding
// may have added it.
#include "text/components/component.h"
#include "text/components/metaspace.h"

namespace octavo {
namespace {

std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  size_t done = 0;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, done)) {
    out += text.substr(done, at - done);
    out += to;
    done = at + from.size();
  }
  out += text.substr(done);
  return out;
}

class MetaspaceStage : public DecodeStage {
 public:
  explicit MetaspaceStage(const MetaspaceConfig& config)
      : config_(config), drop_(config.prepend != PrependScheme::kNever) {}
  void Push(std::string token, std::vector<std::string>& out) override {
    out.push_back(ReplaceAll(token, config_.replacement, drop_ ? "" : " "));
    drop_ = false;
  }

 private:
  const MetaspaceConfig& config_;
  bool drop_;  // until the first token has passed
};

class MetaspaceDecoder : public Decoder {
 public:
  explicit MetaspaceDecoder(MetaspaceConfig config) : config_(std::move(config)) {}
  void AddStages(DecodeMode&, DecodeStages& stages) const override {
    stages.push_back(std::make_unique<MetaspaceStage>(config_));
  }

 private:
  MetaspaceConfig config_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> MakeMetaspaceDecoder(const Value& config, int) {
  OCTAVO_ASSIGN_OR_RETURN(MetaspaceConfig settings, MetaspaceConfig::FromConfig(config));
  return std::unique_ptr<Decoder>(new MetaspaceDecoder(std::move(settings)));
}

}  // namespace octavo
