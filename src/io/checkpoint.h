// A Hugging Face checkpoint folder: config.json and the tensors of all its safetensors files.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "io/safetensors.h"
#include "tensor/tensor.h"

namespace octavo {

class Checkpoint {
 public:
  // Opens model.safetensors.index.json and its shards, or the folder's one *.safetensors file.
  // NotFound when config.json or weights are missing (the message says what kind of file is there
  // instead: .bin, .gguf), CorruptFile when index and shards disagree (a shard missing, a tensor
  // that is not in the shard the index names, a tensor in two shards).
  static Result<Checkpoint> Open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const Value& config() const { return config_; }
  const std::vector<SafetensorsFile>& files() const { return files_; }

  // Every tensor name, sorted.
  std::vector<std::string> Names() const;
  // The tensors "<module>.<one word>", sorted: what one module owns.
  std::vector<std::string> NamesOf(std::string_view module) const {
    const std::string prefix = std::string(module) + ".";
    std::vector<std::string> names;
    for (auto it = index_.lower_bound(prefix); it != index_.end() && it->first.starts_with(prefix);
         ++it) {
      if (it->first.find('.', prefix.size()) == std::string::npos) names.push_back(it->first);
    }
    return names;
  }
  bool Contains(std::string_view name) const { return index_.find(name) != index_.end(); }
  // NotFound names folder and nearest name. A derived tensor is made here; its view lives until it
  // is forgotten.
  Result<TensorView> Find(std::string_view name) const;
  // The file that holds a tensor, for messages.
  std::string FileOf(std::string_view name) const;
  // Tells the system that the bytes of this tensor are not needed again soon.
  void Forget(std::string_view name) const;

  // A tensor that no file has: made whenever it is found and not in memory.
  using MakeTensor = std::function<Result<Tensor>()>;
  // Puts a derived tensor in the place of others, and of one that has its name, whose names are not
  // known from then on; a copy made before still has them. Before other threads read.
  void Replace(const std::vector<std::string>& others, const std::string& name, MakeTensor make);

  // Bytes of all tensors in the files.
  int64_t total_bytes() const;

 private:
  std::filesystem::path folder_;
  Value config_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t, std::less<>> index_;  // tensor name -> files_, or derived_
  struct Derived;
  std::shared_ptr<Derived> derived_;  // null: none
};

}  // namespace octavo
