// Sequence: one post-processor after another.
#include <fmt/format.h>

#include "text/components/component.h"

namespace octavo {
namespace {

class SequencePostProcessor : public PostProcessor {
 public:
  explicit SequencePostProcessor(std::vector<std::unique_ptr<PostProcessor>> parts)
      : parts_(std::move(parts)) {}
  std::vector<Encoding> Process(std::vector<Encoding> sequences,
                                bool add_special_tokens) const override {
    for (const auto& part : parts_) {
      sequences = part->Process(std::move(sequences), add_special_tokens);
    }
    return sequences;
  }

 private:
  std::vector<std::unique_ptr<PostProcessor>> parts_;
};

}  // namespace

Result<std::unique_ptr<PostProcessor>> MakeSequencePostProcessor(const Value& config, int nesting) {
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* configs, RequireArray(config, "processors"));
  std::vector<std::unique_ptr<PostProcessor>> parts;
  for (const Value& part : *configs) {
    auto made = MakePostProcessor(part, nesting + 1);
    if (!made.ok()) return made.status().Annotate(fmt::format("processors[{}]", parts.size()));
    parts.push_back(std::move(made).value());
  }
  return std::unique_ptr<PostProcessor>(new SequencePostProcessor(std::move(parts)));
}

}  // namespace octavo
