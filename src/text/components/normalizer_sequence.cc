// Sequence: one normalizer after another.
#include <fmt/format.h>

#include "text/components/component.h"

namespace octavo {
namespace {

class SequenceNormalizer : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<std::unique_ptr<Normalizer>> parts)
      : parts_(std::move(parts)) {}
  Status Normalize(AlignedText& text) const override {
    for (const auto& part : parts_) OCTAVO_RETURN_IF_ERROR(part->Normalize(text));
    return OkStatus();
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> MakeSequenceNormalizer(const Value& config, int nesting) {
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* configs, RequireArray(config, "normalizers"));
  std::vector<std::unique_ptr<Normalizer>> parts;
  for (const Value& part : *configs) {
    auto made = MakeNormalizer(part, nesting + 1);
    if (!made.ok()) return made.status().Annotate(fmt::format("normalizers[{}]", parts.size()));
    parts.push_back(std::move(made).value());
  }
  return std::unique_ptr<Normalizer>(new SequenceNormalizer(std::move(parts)));
}

}  // namespace octavo
