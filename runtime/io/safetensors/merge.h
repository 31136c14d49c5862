// Weights with what adapters have learnt added to them, one matrix at a time. Private to runtime/io/safetensors.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/io/safetensors/mapped.h"

namespace cairn::io {

class Merger {
 public:
  // kInvalidArgument: a row names what is no parameter, or shapes do not go together.
  Merger(const engine::Session& session, const ExportOptions& options);
  bool takes(std::string_view ours) const { return rows_.contains(ours); }
  // The merged values of one of the tensors that a parameter is written as.
  std::vector<float> values(const Mapped& m, size_t number);

 private:
  struct Adapter {
    const MergeRow* row;
    int32_t a = -1, b = -1, magnitude = -1;
  };
  int32_t find(const std::string& name) const;
  void check(const Adapter& adapter) const;
  void note(const std::vector<float>& values, const std::vector<float>& rounded);

  const engine::Session& session_;
  const bool dequantise_;
  double* const difference_;
  std::map<std::string_view, Adapter> rows_;
  double largest_ = 0, sum_ = 0, count_ = 0;
};

}  // namespace cairn::io
