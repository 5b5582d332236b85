// Sequence: one pre-tokenizer after another.
#include <fmt/format.h>

#include "text/components/component.h"

namespace octavo {
namespace {

class SequencePreTokenizer : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<std::unique_ptr<PreTokenizer>> parts)
      : parts_(std::move(parts)) {}
  Status PreTokenize(PiecedText& text) const override {
    for (const auto& part : parts_) OCTAVO_RETURN_IF_ERROR(part->PreTokenize(text));
    return OkStatus();
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> MakeSequencePreTokenizer(const Value& config, int nesting) {
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* configs, RequireArray(config, "pretokenizers"));
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  for (const Value& part : *configs) {
    auto made = MakePreTokenizer(part, nesting + 1);
    if (!made.ok()) return made.status().Annotate(fmt::format("pretokenizers[{}]", parts.size()));
    parts.push_back(std::move(made).value());
  }
  return std::unique_ptr<PreTokenizer>(new SequencePreTokenizer(std::move(parts)));
}

}  // namespace octavo
