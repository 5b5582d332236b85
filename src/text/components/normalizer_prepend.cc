// Prepend: a text in front of every text that is not empty.
#include "text/components/component.h"

namespace octavo {
namespace {

class PrependNormalizer : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  Status Normalize(AlignedText& text) const override {
    OCTAVO_RETURN_IF_ERROR(CheckGrowth(text.size(), text.size() + prefix_.size()));
    text.Prepend(prefix_);
    return OkStatus();
  }

 private:
  std::string prefix_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> MakePrependNormalizer(const Value& config, int) {
  OCTAVO_ASSIGN_OR_RETURN(std::string prefix, config.RequireString("prepend"));
  return std::unique_ptr<Normalizer>(new PrependNormalizer(std::move(prefix)));
}

}  // namespace octavo
