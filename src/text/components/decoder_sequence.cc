// Sequence: one decoder after another.
#include <fmt/format.h>

#include "text/components/component.h"

namespace octavo {
namespace {

class SequenceDecoder : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> parts)
      : parts_(std::move(parts)) {}
  void AddStages(DecodeMode& mode, DecodeStages& stages) const override {
    for (const auto& part : parts_) part->AddStages(mode, stages);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> MakeSequenceDecoder(const Value& config, int nesting) {
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* configs, RequireArray(config, "decoders"));
  std::vector<std::unique_ptr<Decoder>> parts;
  for (const Value& part : *configs) {
    auto made = MakeDecoder(part, nesting + 1);
    if (!made.ok()) return made.status().Annotate(fmt::format("decoders[{}]", parts.size()));
    parts.push_back(std::move(made).value());
  }
  return std::unique_ptr<Decoder>(new SequenceDecoder(std::move(parts)));
}

}  // namespace octavo
