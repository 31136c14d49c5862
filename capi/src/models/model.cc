// Chapter 10: models. What they do is the command's, in a library that is opened with the first one (plugin.h).
#include <dlfcn.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/src/instance.h"
#include "capi/src/models/plugin.h"
#include "capi/src/structs.h"
#include "capi/src/text.h"

using namespace cairn::capi;
using cairn::Code;
using cairn::require;

namespace {

// Arguments of a call, and what it returned.
class Arguments {
 public:
  Arguments& text(const char* name, const char* value) {
    if (value != nullptr) values_.push_back({name, value, std::char_traits<char>::length(value), 0});
    return *this;
  }
  // Left out where it is 0, which stands for the default.
  Arguments& number(const char* name, double value) {
    if (value != 0) always(name, value);
    return *this;
  }
  Arguments& always(const char* name, double value) {
    values_.push_back({name, nullptr, 0, value});
    return *this;
  }
  const std::vector<cairn_models_value_t>& values() const { return values_; }

 private:
  std::vector<cairn_models_value_t> values_;
};

struct Results {
  struct Value {
    std::string name, text;
    double number;
  };
  std::vector<Value> values;

  static void take(void* to, const cairn_models_value_t* value) {
    static_cast<Results*>(to)->values.push_back(
        {value->name, value->text != nullptr ? std::string(value->text, value->size) : std::string(),
         value->number});
  }
  const Value& operator[](std::string_view name) const {
    static const Value none{};
    for (const Value& value : values)
      if (value.name == name) return value;
    return none;
  }
  double number(std::string_view name) const { return (*this)[name].number; }
  uint64_t count(std::string_view name) const { return static_cast<uint64_t>(number(name)); }
  std::string message() const {
    const std::string& text = (*this)["message"].text;
    return text.empty() ? "the library of models said nothing" : text;
  }
};

std::string own_file() {
  Dl_info info;
  const bool found = dladdr(reinterpret_cast<const void*>(&cairn_version), &info) != 0;
  return found && info.dli_fname != nullptr ? info.dli_fname : "libcairn.so.1";
}

// The library is next to this one, or is looked up by name where the others are; it is never unloaded.
const cairn_models_plugin_t& plugin() {
  constexpr const char* kLibrary = "libcairn_models.so";
  std::error_code none;
  const std::filesystem::path neighbour =
      std::filesystem::weakly_canonical(own_file(), none).replace_filename(kLibrary);
  const std::string name = std::filesystem::exists(neighbour, none) ? neighbour.string() : kLibrary;
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* const reason = library == nullptr ? dlerror() : nullptr;
  require(library != nullptr, Code::kUnsupported, "models need the library of the command `cairn`: ",
          reason != nullptr ? reason : "it cannot be loaded");
  const auto* const found =
      static_cast<const cairn_models_plugin_t*>(dlsym(library, CAIRN_MODELS_PLUGIN_SYMBOL));
  require(found != nullptr && found->abi == CAIRN_MODELS_ABI, Code::kUnsupported, kLibrary,
          " is of another version; install the one that was built with this library");
  return *found;
}

Code code_of(int status) {
  require(status > 0 && status <= CAIRN_STATUS_INTERNAL, Code::kInternal, "a model gave the status ", status);
  return static_cast<Code>(status);
}

}  // namespace

struct cairn_model : cairn::capi::Handle<cairn_model> {
  const cairn_models_plugin_t& of = plugin();
  void* model = nullptr;
  std::mutex mutex;  // an interpreter runs one call at a time

  cairn_model() {
    Results results;
    model = of.create(own_file().c_str(), Results::take, &results);
    require(model != nullptr, Code::kUnsupported, results.message());
  }
  ~cairn_model() {
    if (model == nullptr) return;
    Results results;
    of.call(model, "close", nullptr, 0, Results::take, &results);
    of.destroy(model);
  }

  Results call(const char* function, const Arguments& arguments) {
    const std::lock_guard lock(mutex);
    Results results;
    const int status = of.call(model, function, arguments.values().data(), arguments.values().size(),
                               Results::take, &results);
    require(status == 0, status == 0 ? Code::kInternal : code_of(status), results.message());
    return results;
  }
};

cairn_status_t cairn_model_open(cairn_instance_t* instance, const char* path,
                                const cairn_model_options_t* options, cairn_model_t** out_model,
                                cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    not_null(path, "path");
    not_null(out_model, "out_model");
    const cairn_model_options_t o =
        read_struct(options, cairn_model_options_t CAIRN_MODEL_OPTIONS_INIT, "options");
    array_not_null(o.settings, o.setting_count, "options.settings");
    Arguments arguments;
    for (size_t i = 0; i < o.setting_count; ++i) {
      not_null(o.settings[i], "options.settings[]");
      arguments.text("settings[]", o.settings[i]);
    }
    arguments.text("path", path).text("device", o.device).text("amp", o.amp).text("format", o.format);
    arguments.number("budget_bytes", static_cast<double>(o.budget_bytes));
    arguments.number("seed", static_cast<double>(o.seed)).number("steps", static_cast<double>(o.steps));
    arguments.number("threads", o.threads).number("accumulate", o.accumulate).number("context", o.context);
    auto made = std::make_unique<cairn_model>();
    made->call("open", arguments);
    *out_model = made.release();
  });
}
void cairn_model_retain(cairn_model_t* model) { retain(model); }
void cairn_model_release(cairn_model_t* model) { release(model); }

cairn_status_t cairn_model_describe(cairn_model_t* model, cairn_model_info_t* out_info,
                                    cairn_error_t* error) {
  return guard(error, [&] {
    not_null(model, "model");
    const OutStruct out(out_info, "out_info");
    const Results found = model->call("info", {});
    cairn_model_info_t info = CAIRN_MODEL_INFO_INIT;
    info.parameters = found.count("parameters");
    info.trainable_parameters = found.count("trainable_parameters");
    info.planned_bytes[CAIRN_TIER_DEVICE] = found.count("planned_device");
    info.planned_bytes[CAIRN_TIER_HOST] = found.count("planned_host");
    info.planned_bytes[CAIRN_TIER_DISK] = found.count("planned_disk");
    info.seq = found.count("seq");
    info.batch = found.count("batch");
    info.vocabulary = found.count("vocabulary");
    out.write(info);
  });
}

cairn_status_t cairn_model_add(cairn_model_t* model, const char* prompt, const char* answer,
                               cairn_error_t* error) {
  return guard(error, [&] {
    not_null(model, "model");
    not_null(prompt, "prompt");
    not_null(answer, "answer");
    model->call("add", Arguments().text("prompt", prompt).text("answer", answer));
  });
}

cairn_status_t cairn_model_add_row(cairn_model_t* model, const char* json, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(model, "model");
    not_null(json, "json");
    model->call("add", Arguments().text("row", json));
  });
}

cairn_status_t cairn_model_train(cairn_model_t* model, uint64_t steps, cairn_model_report_t* out_report,
                                 cairn_error_t* error) {
  return guard(error, [&] {
    not_null(model, "model");
    require(steps >= 1 && steps <= (uint64_t{1} << 53), Code::kInvalidArgument, "argument 'steps' is ", steps,
            "; it must be at least 1");
    cairn_model_report_t nowhere = CAIRN_MODEL_REPORT_INIT;
    const OutStruct out(out_report != nullptr ? out_report : &nowhere, "out_report");
    const Results found = model->call("train", Arguments().always("steps", static_cast<double>(steps)));
    cairn_model_report_t report = CAIRN_MODEL_REPORT_INIT;
    report.loss = found.number("loss");
    report.seconds = found.number("seconds");
    report.step = found.count("step");
    report.tokens = found.count("tokens");
    out.write(report);
  });
}

cairn_status_t cairn_model_generate(cairn_model_t* model, const char* prompt, uint32_t tokens,
                                    const cairn_sampling_t* sampling, cairn_text_t** out_text,
                                    cairn_error_t* error) {
  return guard(error, [&] {
    not_null(model, "model");
    not_null(prompt, "prompt");
    not_null(out_text, "out_text");
    const cairn_sampling_t s = read_struct(sampling, cairn_sampling_t CAIRN_SAMPLING_INIT, "sampling");
    Arguments arguments;
    arguments.text("prompt", prompt).number("tokens", tokens).number("seed", static_cast<double>(s.seed));
    arguments.always("temperature", s.temperature).always("top_k", s.top_k).always("top_p", s.top_p);
    arguments.always("min_p", s.min_p).always("repetition_penalty", s.repetition_penalty);
    auto made = std::make_unique<cairn_text>(model->call("generate", arguments)["text"].text);
    *out_text = made.release();
  });
}

cairn_status_t cairn_model_save(cairn_model_t* model, const char* directory, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(model, "model");
    not_null(directory, "directory");
    model->call("save", Arguments().text("path", directory));
  });
}

cairn_status_t cairn_model_export(cairn_model_t* model, const char* path, const char* form,
                                  cairn_error_t* error) {
  return guard(error, [&] {
    not_null(model, "model");
    not_null(path, "path");
    not_null(form, "form");
    model->call("export", Arguments().text("path", path).text("to", form));
  });
}
