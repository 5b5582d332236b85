#include "convert/import_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "convert/gguf_blocks.h"
#include "convert/gguf_model.h"
#include "convert/gguf_tokenizer.h"
#include "io/checkpoint_writer.h"
#include "io/gguf.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

constexpr int64_t kRowsPerTask = 32;

// Hugging Face's rows: those of a matrix; for a vector whose elements are reordered, its elements;
// any other vector is one row.
int64_t RowElements(const ImportedTensor& tensor) {
  const Shape& shape = tensor.source->shape;
  return shape.size() == 1 && tensor.rotary_heads != 0 ? 1 : shape.back();
}

// Whether a number becomes infinite only by being stored.
bool Overflows(float value, DType dtype) {
  return dtype == DType::kF16 && std::isfinite(value) &&
         std::isinf(FloatFromF16(F16FromFloat(value)));
}

// A tensor in Hugging Face's order, as `dtype`.
Result<Tensor> DecodeTensor(const ImportedTensor& tensor, const GgufBlockDecoder& decoder,
                            DType dtype, ThreadPool& pool) {
  const GgufTensor& source = *tensor.source;
  const int64_t columns = RowElements(tensor);
  const int64_t rows = columns == 0 ? 0 : Elements(source.shape) / columns;
  const int64_t row_bytes = columns / source.type->block_elements * source.type->block_bytes;
  Tensor decoded(dtype, source.shape);
  std::atomic<bool> overflow = false;
  const auto store = [&](const std::vector<float>& values, int64_t row) {
    if (dtype == DType::kF32) {
      std::copy(values.begin(), values.end(),
                decoded.mutable_data<float>().begin() + row * columns);
    } else {
      std::transform(values.begin(), values.end(),
                     decoded.mutable_data<uint16_t>().begin() + row * columns,
                     dtype == DType::kF16 ? F16FromFloat : Bf16FromFloat);
    }
  };
  pool.ParallelFor((rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task) {
    std::vector<float> values(static_cast<size_t>(columns));
    const int64_t end = std::min(rows, (task + 1) * kRowsPerTask);
    for (int64_t row = task * kRowsPerTask; row < end; ++row) {
      const int64_t source_row = SourceRow(row, rows, tensor.rotary_heads);
      DecodeGgufBlocks(*source.type, decoder,
                       source.bytes.subspan(static_cast<size_t>(source_row * row_bytes),
                                            static_cast<size_t>(row_bytes)),
                       values);
      store(values, row);
      if (std::any_of(values.begin(), values.end(),
                      [&](float value) { return Overflows(value, dtype); })) {
        overflow = true;
      }
    }
  });
  if (overflow) {
    return Unsupported(
        fmt::format("tensor {} has numbers that float16 cannot hold: import it with --dtype "
                    "bfloat16 or float32",
                    source.name));
  }
  return decoded;
}

struct ImportPlan {
  ImportedModel model;
  ImportedTokenizer tokenizer;
  std::vector<PlannedTensor> planned;             // one for each tensor of the model
  std::vector<const GgufBlockDecoder*> decoders;  // likewise
};

Result<ImportPlan> PlanImport(const GgufFile& file, std::optional<DType> dtype) {
  ImportPlan plan;
  OCTAVO_ASSIGN_OR_RETURN(plan.model, PlanModel(file, dtype));
  for (const ImportedTensor& tensor : plan.model.tensors) {
    Result<const GgufBlockDecoder*> decoder = FindGgufBlockDecoder(*tensor.source->type);
    if (!decoder.ok()) return decoder.status().Annotate("tensor " + tensor.source->name);
    if (RowElements(tensor) % tensor.source->type->block_elements != 0) {
      return Unsupported(
          fmt::format("tensor {}: a bias of block type {}, only plain floats are "
                      "imported",
                      tensor.source->name, tensor.source->type->name));
    }
    plan.decoders.push_back(*decoder);
    plan.planned.push_back({tensor.name, plan.model.dtype, tensor.source->shape});
  }
  OCTAVO_ASSIGN_OR_RETURN(const int64_t vocab_size, plan.model.config.RequireInt("vocab_size"));
  OCTAVO_ASSIGN_OR_RETURN(plan.tokenizer, MakeTokenizer(file.metadata(), vocab_size));
  return plan;
}

Status WriteWeights(const GgufFile& file, const ImportPlan& plan, CheckpointWriter& writer,
                    const Context& context) {
  for (size_t i = 0; i < plan.model.tensors.size(); ++i) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    const ImportedTensor& tensor = plan.model.tensors[i];
    OCTAVO_ASSIGN_OR_RETURN(const Tensor decoded, DecodeTensor(tensor, *plan.decoders[i],
                                                               plan.model.dtype, context.pool));
    OCTAVO_RETURN_IF_ERROR(writer.Write(tensor.name, decoded));
    file.Forget(*tensor.source);
    context.progress.Advance(decoded.num_bytes(), tensor.name);
  }
  return OkStatus();
}

Status WriteJsonFiles(const ImportPlan& plan, const std::filesystem::path& folder) {
  const auto write = [&](const char* name, const Value& value, bool sorted, std::string_view end) {
    return WriteFileAtomically(folder / name,
                               WriteJson(value, {.indent = 2, .sort_keys = sorted}).append(end));
  };
  OCTAVO_RETURN_IF_ERROR(write("config.json", plan.model.config, true, "\n"));
  OCTAVO_RETURN_IF_ERROR(write("generation_config.json", plan.model.generation_config, true, "\n"));
  OCTAVO_RETURN_IF_ERROR(write("tokenizer_config.json", plan.tokenizer.config, true, "\n"));
  return write("tokenizer.json", plan.tokenizer.pipeline, false,
               "");  // as the tokenizers library ends it
}

Status WriteFolder(const GgufFile& file, const ImportPlan& plan, CheckpointWriter& writer,
                   const Context& context) {
  OCTAVO_RETURN_IF_ERROR(WriteJsonFiles(plan, writer.unfinished_folder()));
  context.progress.Start("Importing", writer.total_bytes());
  const Status status = WriteWeights(file, plan, writer, context);
  context.progress.Finish();
  OCTAVO_RETURN_IF_ERROR(status);
  OCTAVO_RETURN_IF_ERROR(writer.Finish());
  return writer.Commit();
}

}  // namespace

Status ImportGguf(const std::filesystem::path& gguf, const std::filesystem::path& out,
                  const ImportOptions& options, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(gguf));
  const Result<ImportPlan> plan = PlanImport(file, options.dtype);
  if (!plan.ok()) return plan.status().Annotate(gguf.string());
  OCTAVO_ASSIGN_OR_RETURN(CheckpointWriter writer,
                          CheckpointWriter::Create(out, plan->planned,
                                                   {.max_shard_bytes = options.max_shard_bytes,
                                                    .force = options.force}));
  const Status status = WriteFolder(file, *plan, writer, context);
  if (!status.ok()) writer.Abandon();
  return status;
}

}  // namespace octavo
