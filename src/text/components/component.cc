#include "text/components/component.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "base/json.h"

namespace octavo {

#define OCTAVO_COMPONENT(type, make) \
  Result<std::unique_ptr<Normalizer>> make(const Value& config, int nesting);
#include "text/components/normalizers.inc"
#undef OCTAVO_COMPONENT
#define OCTAVO_COMPONENT(type, make) \
  Result<std::unique_ptr<PreTokenizer>> make(const Value& config, int nesting);
#include "text/components/pre_tokenizers.inc"
#undef OCTAVO_COMPONENT
#define OCTAVO_COMPONENT(type, make) \
  Result<std::unique_ptr<TokenModel>> make(const Value& config, int nesting);
#include "text/components/models.inc"
#undef OCTAVO_COMPONENT
#define OCTAVO_COMPONENT(type, make) \
  Result<std::unique_ptr<PostProcessor>> make(const Value& config, int nesting);
#include "text/components/post_processors.inc"
#undef OCTAVO_COMPONENT
#define OCTAVO_COMPONENT(type, make) \
  Result<std::unique_ptr<Decoder>> make(const Value& config, int nesting);
#include "text/components/decoders.inc"
#undef OCTAVO_COMPONENT

namespace {

template <typename T>
struct Entry {
  std::string_view type;
  Result<std::unique_ptr<T>> (*make)(const Value& config, int nesting);
};

#define OCTAVO_COMPONENT(type, make) {type, make},
constexpr Entry<Normalizer> kNormalizers[] = {
#include "text/components/normalizers.inc"
};
constexpr Entry<PreTokenizer> kPreTokenizers[] = {
#include "text/components/pre_tokenizers.inc"
};
constexpr Entry<TokenModel> kModels[] = {
#include "text/components/models.inc"
};
constexpr Entry<PostProcessor> kPostProcessors[] = {
#include "text/components/post_processors.inc"
};
constexpr Entry<Decoder> kDecoders[] = {
#include "text/components/decoders.inc"
};
#undef OCTAVO_COMPONENT

// The component's "type". Files of the first versions have a model without one, recognized by its
// merges.
Result<std::string> TypeOf(const Value& config, std::string_view kind) {
  if (!config.is_object()) {
    return CorruptFile(
        fmt::format("expected an object with \"type\", found {}", config.type_name()));
  }
  if (kind == "model" && config.Find("type") == nullptr && config.Find("merges") != nullptr) {
    return std::string("BPE");
  }
  return config.RequireString("type");
}

template <typename T>
Result<std::unique_ptr<T>> Make(std::string_view kind, std::span<const Entry<T>> entries,
                                const Value& config, int nesting) {
  if (nesting > kMaxNesting) {
    return CorruptFile(fmt::format("sequences are nested more than {} deep", kMaxNesting));
  }
  OCTAVO_ASSIGN_OR_RETURN(const std::string type, TypeOf(config, kind));
  std::vector<std::string_view> known;
  for (const Entry<T>& entry : entries) {
    if (entry.type != type) {
      known.push_back(entry.type);
      continue;
    }
    Result<std::unique_ptr<T>> made = entry.make(config, nesting);
    if (!made.ok()) return made.status().Annotate(type);
    return made;
  }
  return Unsupported(fmt::format("{} {} is not supported yet; known: {}", kind,
                                 JsonString(type.substr(0, 100)), fmt::join(known, ", ")));
}

}  // namespace

Result<std::unique_ptr<Normalizer>> MakeNormalizer(const Value& config, int nesting) {
  return Make<Normalizer>("normalizer", kNormalizers, config, nesting);
}
Result<std::unique_ptr<PreTokenizer>> MakePreTokenizer(const Value& config, int nesting) {
  return Make<PreTokenizer>("pre_tokenizer", kPreTokenizers, config, nesting);
}
Result<std::unique_ptr<TokenModel>> MakeTokenModel(const Value& config, int nesting) {
  return Make<TokenModel>("model", kModels, config, nesting);
}
Result<std::unique_ptr<PostProcessor>> MakePostProcessor(const Value& config, int nesting) {
  return Make<PostProcessor>("post_processor", kPostProcessors, config, nesting);
}
Result<std::unique_ptr<Decoder>> MakeDecoder(const Value& config, int nesting) {
  return Make<Decoder>("decoder", kDecoders, config, nesting);
}

Result<const Value::Array*> RequireArray(const Value& config, std::string_view key) {
  const Value* value = config.Find(key);
  if (value == nullptr || !value->is_array()) {
    return CorruptFile(fmt::format("{}: expected an array, found {}", key,
                                   value == nullptr ? "nothing" : value->type_name()));
  }
  return &value->as_array();
}

}  // namespace octavo
