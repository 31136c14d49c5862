// Chapter 10: a model from its files, trained on texts of the program.
#ifndef CAIRN_CPP_MODEL_HPP_
#define CAIRN_CPP_MODEL_HPP_

#include <string>
#include <utility>
#include <vector>

#include "generator.hpp"
#include "instance.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

// cairn_model_options_t, which holds what it is given.
class ModelOptions {
 public:
  // As the command takes it: setting("lora", "8").
  ModelOptions& setting(const std::string& key, const std::string& value) {
    settings_.push_back(key + "=" + value);
    return *this;
  }
  ModelOptions& device(std::string name) { return set(device_, std::move(name)); }
  ModelOptions& amp(std::string mode) { return set(amp_, std::move(mode)); }
  ModelOptions& format(std::string of_frozen) { return set(format_, std::move(of_frozen)); }
  ModelOptions& budget_bytes(uint64_t bytes) { return set(numbers.budget_bytes, bytes); }
  ModelOptions& seed(uint64_t number) { return set(numbers.seed, number); }

  // The numbers of the struct; its texts are this object's.
  cairn_model_options_t numbers = CAIRN_MODEL_OPTIONS_INIT;

 private:
  friend class Model;
  template <class T, class From>
  ModelOptions& set(T& field, From value) {
    field = std::move(value);
    return *this;
  }
  std::vector<std::string> settings_;
  std::string device_, amp_, format_;  // "": the default
};

// Training and texts of one model. It is used by one thread at a time.
class Model : public detail::Handle<cairn_model_t, cairn_model_retain, cairn_model_release> {
 public:
  using Handle::Handle;
  // A directory as Transformers writes it. blocks: while it loads. errors: OVER_BUDGET, NOT_FOUND, CORRUPT_FILE, IO, UNSUPPORTED
  // (the command's library is not installed).
  static Outcome<Model> open(const Instance& instance, Text path, const ModelOptions& options = {}) {
    std::vector<const char*> settings;
    for (const std::string& setting : options.settings_) settings.push_back(setting.c_str());
    cairn_model_options_t o = options.numbers;
    o.settings = settings.data();
    o.setting_count = settings.size();
    o.device = or_null(options.device_);
    o.amp = or_null(options.amp_);
    o.format = or_null(options.format_);
    return detail::make<Model>({path}, [&](auto* out, auto* error) {
      return cairn_model_open(instance.get(), path.c_str(), &o, out, error);
    });
  }
  Outcome<cairn_model_info_t> info() {
    return detail::fill({}, cairn_model_info_t CAIRN_MODEL_INFO_INIT,
                        [&](auto* out, auto* error) { return cairn_model_describe(handle_, out, error); });
  }
  // A row to train with: the answer is what is learned.
  Outcome<void> add(Text prompt, Text answer) {
    return detail::call({prompt, answer}, [&](auto* error) {
      return cairn_model_add(handle_, prompt.c_str(), answer.c_str(), error);
    });
  }
  // The same of any row of instruction data, a JSON object.
  Outcome<void> add_row(Text json) {
    return detail::call({json},
                        [&](auto* error) { return cairn_model_add_row(handle_, json.c_str(), error); });
  }
  // blocks: for the steps. errors: NON_FINITE, those of Session::run.
  Outcome<cairn_model_report_t> train(uint64_t steps) {
    return detail::fill({}, cairn_model_report_t CAIRN_MODEL_REPORT_INIT, [&](auto* out, auto* error) {
      return cairn_model_train(handle_, steps, out, error);
    });
  }
  // The answer to a prompt, of at most so many tokens; 0: 512. errors: NON_FINITE.
  Outcome<std::string> generate(Text prompt, uint32_t tokens = 0, const Sampling& sampling = {}) {
    cairn_text_t* made = nullptr;
    return detail::call(
        {prompt},
        [&](auto* error) {
          return cairn_model_generate(handle_, prompt.c_str(), tokens, &sampling, &made, error);
        },
        [&] {
          const detail::TextHandle text(made);
          return std::string(cairn_text_data(text.get()), cairn_text_size(text.get()));
        });
  }
  // A checkpoint below the directory. errors: IO.
  Outcome<void> save(Text directory) {
    return detail::call({directory},
                        [&](auto* error) { return cairn_model_save(handle_, directory.c_str(), error); });
  }
  // What `cairn export --to` writes: "hf", "adapter", ... errors: IO.
  Outcome<void> export_as(Text path, Text form) {
    return detail::call({path, form}, [&](auto* error) {
      return cairn_model_export(handle_, path.c_str(), form.c_str(), error);
    });
  }

 private:
  static const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
};

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn

#endif  // CAIRN_CPP_MODEL_HPP_
