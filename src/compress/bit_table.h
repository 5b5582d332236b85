// What each candidate scheme costs each unit of layers, in bits and in loss: measured once, kept in
// a file, chosen from as often as wanted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "compress/bit_choice.h"

namespace octavo {

struct BitTable {
  struct Unit {
    std::vector<std::string> layers;  // that run as one, and get one scheme
    int64_t weights = 0;
    std::vector<BitOption> options;  // of each candidate
  };
  std::vector<std::string> candidates;  // names of presets
  int64_t group_size = 0;               // of their weights; 0: the presets' own
  std::string method;                   // that the candidates were quantized by: "gptq", "rtn"
  std::vector<Unit> units;              // in the order of the model

  int64_t weights() const;
  std::vector<std::vector<BitOption>> Options() const;
};

Value ToJson(const BitTable& table);
// CorruptFile names what is missing or does not fit. `what` names the file.
Result<BitTable> ParseBitTable(std::string_view text, std::string_view what);

}  // namespace octavo
