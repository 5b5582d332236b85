// ForeignFormat: the quantization_config of another tool, told as one of ours.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "quant/config.h"

namespace octavo {

// One line of foreign.inc. What its layers have on disk is a scheme's matter: their groups have a
// `format` of the tool's name ("gptq"), which no checkpoint of ours declares.
struct ForeignFormat {
  std::string_view quant_method;  // "gptq"

  // `where` names the object in messages. InvalidArgument for what the tool could not have
  // written, Unsupported, with what to do, for what is not read here. Unknown keys are ignored:
  // these tools write all they were called with.
  Result<QuantizationConfig> (*parse)(const Value& json, std::string_view where);
};

// Every format, in the order of foreign.inc.
std::span<const ForeignFormat* const> ForeignFormats();
// Null when there is none of that name.
const ForeignFormat* FindForeignFormat(std::string_view quant_method);

// A regular expression that matches just `text`.
std::string EscapeRegex(std::string_view text);

// The strings of the first of `keys` that is there and not null; none when there is no such key.
Result<std::vector<std::string>> FirstStrings(const Value& json,
                                              std::initializer_list<std::string_view> keys);

// A config of one group: all linear layers where the scheme has no targets.
QuantizationConfig OneGroup(QuantizationScheme scheme, std::vector<std::string> ignore,
                            std::string_view quant_method);

}  // namespace octavo
