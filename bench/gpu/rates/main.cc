// cairn_gpu_rates [--device cuda:0] [--quick] [--models 124m,...]   one JSON object on stdout: the rate of
// copies inside the device, of every kernel row at the sizes of a few models, and of the links. --quick: for
// an emulated GPU.
#include <cstdio>
#include <cstring>

#include "bench/arguments.h"
#include "bench/gpu/rates/cases.h"
#include "bench/gpu/rates/links.h"
#include "bench/gpu/rates/runner.h"

namespace cairn::bench {
namespace {

struct Wanted {
  std::string device = "cuda:0", models;
  bool quick = false;
};

Wanted parse(int argc, char** argv) {
  Wanted a;
  std::vector<char*> left = {argv[0]};
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
      left.push_back(argv[i]);
  }
  Arguments(static_cast<int>(left.size()), left.data(),
            "cairn_gpu_rates [--device D] [--quick] [--models NAME,...]")
      .words(0);
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

// Rows of the table of kernels.
class Table {
 public:
  Table(Bench& bench, const kernels::Registry& registry, const Model& model, List& list)
      : bench_(bench), registry_(registry), model_(model), list_(list) {}

  // One for each row of the registry that takes the case.
  void add(const Case& c) {
    bool taken = false;
    for (const kernels::KernelRow& row : registry_.rows)
      if (row.op == c.op) taken = measure(c, row.name, [&] { return row.make(signature_of(c)); }) || taken;
    if (!taken) list_.add(cat(head(c), ", \"error\": \"no kernel takes it\""));
  }
  void add(const BatchCase& batch) {
    std::vector<kernels::Signature> ops;
    for (const Case& op : batch.ops) ops.push_back(signature_of(op));
    if (registry_.batch != nullptr) measure(batch.all, "batch", [&] { return registry_.batch(ops); });
  }

 private:
  static kernels::Signature signature_of(const Case& c) {
    return {c.op, c.in, c.out, c.in_present, c.out_present, &c.attrs, 1};
  }
  std::string head(const Case& c) const {
    return cat("\"model\": ", quoted(model_.name), ", \"name\": ", quoted(c.name),
               ", \"op\": ", quoted(c.op));
  }
  // False: `make` gives no kernel.
  template <class Make>
  bool measure(const Case& c, std::string_view row, const Make& make) {
    const std::string whole = cat(head(c), ", \"row\": ", quoted(row), ", \"bytes\": ", number(c.bytes),
                                  ", \"flops\": ", number(c.flops));
    try {
      const std::unique_ptr<kernels::Kernel> kernel = make();
      if (kernel == nullptr) return false;
      list_.add(cat(whole, ", \"seconds\": ", number(bench_.seconds(*kernel, c))));
    } catch (const Error& error) {
      list_.add(cat(whole, ", \"error\": ", quoted(error.what())));
      if (error.code() == Code::kDeviceLost) throw;
    }
    return true;
  }

  Bench& bench_;
  const kernels::Registry& registry_;
  const Model& model_;
  List& list_;
};

int run(const Wanted& a) {
  const auto device = device::open(a.device, {});
  Effort effort;
  if (a.quick)
    effort = {.sample_seconds = 0,
              .samples = 1,
              .max_launches = 1,
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
    for (const Model& model : models) {
      Table table(bench, device->kernels(), model, list);
      for (const Case& c : model_cases(model, device->kernels())) table.add(c);
      for (const BatchCase& batch : batch_cases(model, device->kernels())) table.add(batch);
    }
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
