// cairn_gpu_rates [--device cuda:0] [--quick] [--models 124m,...]   one JSON object on stdout: the rate of
// copies inside the device, of every kernel row at the sizes of a few models, and of the links. --quick: for
// an emulated GPU.
#include <cstdio>
#include <cstring>

#include "bench/gpu/rates/cases.h"
#include "bench/gpu/rates/links.h"
#include "bench/gpu/rates/runner.h"

namespace cairn::bench {
namespace {

struct Arguments {
  std::string device = "cuda:0", models;
  bool quick = false;
};

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--quick")
      a.quick = true;
    else if (word == "--device" && more)
      a.device = argv[++i];
    else if (word == "--models" && more)
      a.models = argv[++i];
    else
      fail(Code::kInvalidArgument, "usage: cairn_gpu_rates [--device D] [--quick] [--models NAME,...]; not '",
           word, "'");
  }
  return a;
}

bool wanted(const std::string& list, const std::string& name) {
  return list.empty() || ("," + list + ",").find("," + name + ",") != std::string::npos;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + "\"";
}

// Elements of a JSON list, one a line.
class List {
 public:
  explicit List(const char* name) { std::printf(",\n%s: [", quoted(name).c_str()); }
  ~List() { std::printf("]"); }
  void add(const std::string& object) {
    std::printf("%s\n  {%s}", first_ ? "" : ",", object.c_str());
    std::fflush(stdout);
    first_ = false;
  }

 private:
  bool first_ = true;
};

std::string number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

// One row of the table of kernels per row of the registry that takes the case.
void measure(Bench& bench, const kernels::Registry& registry, const Model& model, const Case& c, List& list) {
  const std::string head =
      cat("\"model\": ", quoted(model.name), ", \"name\": ", quoted(c.name), ", \"op\": ", quoted(c.op));
  bool taken = false;
  for (const kernels::KernelRow& row : registry.rows) {
    if (row.op != c.op) continue;
    const std::string whole = cat(head, ", \"row\": ", quoted(row.name), ", \"bytes\": ", number(c.bytes),
                                  ", \"flops\": ", number(c.flops));
    try {
      const double seconds = bench.seconds(row, c);
      if (seconds > 0) list.add(cat(whole, ", \"seconds\": ", number(seconds)));
      taken = taken || seconds > 0;
    } catch (const Error& error) {
      list.add(cat(whole, ", \"error\": ", quoted(error.what())));
      taken = true;
      if (error.code() == Code::kDeviceLost) throw;
    }
  }
  if (!taken) list.add(cat(head, ", \"error\": \"no kernel takes it\""));
}

int run(const Arguments& a) {
  const auto device = device::open(a.device, {});
  Effort effort;
  if (a.quick)
    effort = {.sample_seconds = 0,
              .samples = 1,
              .most_launches = 1,
              .cold_bytes = 0,
              .memory_bytes = int64_t{16} << 20,
              .copy_bytes = int64_t{1} << 20};
  std::vector<Model> models = a.quick ? std::vector<Model>{emulated_model()} : gpu_models();
  std::erase_if(models, [&](const Model& m) { return !wanted(a.models, m.name); });
  std::printf("{\"device\": %s", quoted(device->info().description).c_str());
  {
    Bench bench(*device, effort);
    std::printf(",\n\"copy_bytes_per_second\": %s", number(bench.copy_rate()).c_str());
    List list("kernels");
    for (const Model& model : models)
      for (const Case& c : model_cases(model, device->kernels()))
        measure(bench, device->kernels(), model, c, list);
  }
  constexpr int64_t kMiB = int64_t{1} << 20;
  List list("links");
  for (const Tier tier : {Tier::kHost, Tier::kDisk}) {
    std::vector<int64_t> sizes{kMiB, 16 * kMiB, 256 * kMiB};
    if (tier == Tier::kDisk) sizes = {16 * kMiB, 64 * kMiB};
    if (a.quick) sizes = {kMiB / 16};
    const std::string_view name = kTierNames[static_cast<size_t>(tier)];
    try {
      for (const LinkRate& r : link_rates(*device, tier, sizes))
        list.add(cat("\"tier\": ", quoted(name), ", \"way\": \"", r.outwards ? "out" : "in",
                     "\", \"both\": ", r.both ? "true" : "false", ", \"bytes\": ", r.bytes,
                     ", \"bytes_per_second\": ", number(r.bytes_per_second)));
    } catch (const Error& error) {
      list.add(cat("\"tier\": ", quoted(name), ", \"error\": ", quoted(error.what())));
    }
  }
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  try {
    const int code = cairn::bench::run(cairn::bench::parse(argc, argv));
    std::printf("}\n");
    return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cairn_gpu_rates: %s\n", error.what());
    return 1;
  }
}
