// Chapter 3: ops of the program's own, as closures that may fail.
#ifndef CAIRN_CPP_CUSTOM_OP_HPP_
#define CAIRN_CPP_CUSTOM_OP_HPP_

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "handle.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

// Type of a tensor: dims row-major, slowest first; dtype of CAIRN_F32 and so on.
struct TensorType {
  std::vector<int64_t> dims;
  uint32_t dtype = CAIRN_F32;
};

// A tensor as a closure of a custom op sees it; good while the closure runs.
class Tensor {
 public:
  explicit Tensor(const cairn_tensor_t& raw) noexcept : raw_(&raw) {}
  Span<const int64_t> dims() const noexcept { return {raw_->dims, raw_->rank}; }
  uint32_t dtype() const noexcept { return raw_->dtype; }
  size_t size() const noexcept {  // elements
    size_t size = 1;
    for (const int64_t dim : dims()) size *= static_cast<size_t>(dim);
    return size;
  }
  TensorType type() const { return {{dims().begin(), dims().end()}, dtype()}; }
  // false: a gradient that is zero, or one that is not wanted.
  bool present() const noexcept { return raw_->data != nullptr; }
  void* raw_data() const noexcept { return raw_->data; }
  // Its elements; none where it is not present. T: float, double, int32_t, int64_t, uint8_t, or uint16_t for the bits of
  // bfloat16 and float16. errors: INVALID_ARGUMENT (it has elements of another type).
  template <class T>
  Outcome<Span<T>> data() const {
    if (!holds<T>(dtype()))
      return detail::failed<Span<T>>(
          Error(CAIRN_STATUS_INVALID_ARGUMENT, "the tensor has the dtype " + std::to_string(dtype()) +
                                                   ", whose elements are of another type than asked for"));
    return Span<T>(static_cast<T*>(raw_->data), present() ? size() : 0);
  }

 private:
  template <class T>
  static bool holds(uint32_t dtype) noexcept {
    using E = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<E, float>) return dtype == CAIRN_F32;
    if constexpr (std::is_same_v<E, double>) return dtype == CAIRN_F64;
    if constexpr (std::is_same_v<E, int32_t>) return dtype == CAIRN_I32;
    if constexpr (std::is_same_v<E, int64_t>) return dtype == CAIRN_I64;
    if constexpr (std::is_same_v<E, uint8_t>) return dtype == CAIRN_U8;
    if constexpr (std::is_same_v<E, uint16_t>) return dtype == CAIRN_BF16 || dtype == CAIRN_F16;
    return false;
  }
  const cairn_tensor_t* raw_;
};

// What the closures forward and backward work on. workspace(): as many bytes as the closure of that name asked for.
class Forward {
 public:
  Forward(const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace) noexcept
      : in_(in), out_(out), workspace_(workspace) {}
  Tensor input(size_t index) const noexcept { return Tensor(in_[index]); }
  Tensor output(size_t index) const noexcept { return Tensor(out_[index]); }  // to be filled
  void* workspace() const noexcept { return workspace_; }

 private:
  const cairn_tensor_t *in_, *out_;
  void* workspace_;
};
class Backward {
 public:
  Backward(const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace, size_t inputs,
           size_t outputs) noexcept
      : in_(in), out_(out), workspace_(workspace), inputs_(inputs), outputs_(outputs) {}
  Tensor input(size_t index) const noexcept { return Tensor(in_[index]); }
  Tensor output(size_t index) const noexcept { return Tensor(in_[inputs_ + index]); }
  Tensor output_gradient(size_t index) const noexcept { return Tensor(in_[inputs_ + outputs_ + index]); }
  Tensor input_gradient(size_t index) const noexcept { return Tensor(out_[index]); }  // to be filled
  void* workspace() const noexcept { return workspace_; }

 private:
  const cairn_tensor_t *in_, *out_;
  void* workspace_;
  size_t inputs_, outputs_;
};

// An op of the program's own, for Graph::add. Closures fail by what they throw, and by a Result or cairn_status_t that they
// return; the call that they run for fails with their status (a failing workspace: INVALID_ARGUMENT) and words, and nothing
// thrown leaves them. They run on threads of cairn's, may run on several at once, and must not call cairn. They are destroyed
// when the graph and everything made from it are gone.
class CustomOp {
 public:
  // 1 to 4 inputs and outputs. forward(const Forward&). Where nothing else is said, outputs have the type of the first input,
  // there is no gradient and no workspace, and the op is not computed again.
  template <class Run>
  CustomOp(std::string name, uint32_t inputs, uint32_t outputs, Run forward)
      : name_(std::move(name)),
        inputs_(inputs),
        outputs_(outputs),
        forward_(uniform<Forward>(std::move(forward))) {}
  // std::vector<TensorType>(const std::vector<TensorType>& inputs), or a Result of it: the types of the outputs.
  template <class Ask>
  CustomOp& shape(Ask ask) {
    shape_ = answer<Types>(std::move(ask));
    return *this;
  }
  // int64_t(const std::vector<TensorType>& inputs), or a Result of it: bytes of workspace, of forward and of backward.
  template <class Ask>
  CustomOp& workspace(Ask ask) {
    workspace_ = answer<int64_t>(std::move(ask));
    return *this;
  }
  // backward(const Backward&).
  template <class Run>
  CustomOp& backward(Run run) {
    backward_ = uniform<Backward>(std::move(run));
    return *this;
  }
  // Promises that forward gives the same each time, and has no side effects: then plans may compute it again.
  CustomOp& recomputable(bool yes = true) {
    recomputable_ = yes;
    return *this;
  }
  const std::string& name() const noexcept { return name_; }

  // For cairn.h: calls `op`, which it does not own.
  static cairn_custom_op_t raw(CustomOp& op) {
    cairn_custom_op_t raw = CAIRN_CUSTOM_OP_INIT;
    raw.name = op.name_.c_str();
    raw.inputs = op.inputs_;
    raw.outputs = op.outputs_;
    raw.recomputable = op.recomputable_ ? 1 : 0;
    raw.user = &op;
    raw.shape = call_shape;
    if (op.workspace_) raw.workspace_bytes = call_workspace;
    raw.forward = [](void* user, const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace) {
      return shielded([&] { return self(user).forward_(Forward(in, out, workspace)); });
    };
    if (op.backward_)
      raw.backward = [](void* user, const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace) {
        const CustomOp& me = self(user);
        return shielded([&] { return me.backward_(Backward(in, out, workspace, me.inputs_, me.outputs_)); });
      };
    raw.failure_words = [](void*) -> const char* { return words()[0] != '\0' ? words() : nullptr; };
    return raw;
  }

 private:
  // What closures come to. No Result: it is of other types in files of other versions of C++, and this class is the same.
  template <class Call>
  using Closure = std::function<std::optional<Error>(const Call&)>;
  using Types = std::vector<TensorType>;
  template <class Answer>
  using Question = std::function<std::variant<Answer, Error>(const Types&)>;

  static const CustomOp& self(const void* user) noexcept { return *static_cast<const CustomOp*>(user); }

  // A closure that fails in any of the ways as one that returns its Error.
  template <class Call, class Run>
  static Closure<Call> uniform(Run run) {
    return [run = std::move(run)](const Call& call) -> std::optional<Error> {
      using Given = std::invoke_result_t<const Run&, const Call&>;
      if constexpr (std::is_void_v<Given>) {
        run(call);
        return std::nullopt;
      } else if constexpr (std::is_integral_v<Given>) {
        const cairn_status_t status = run(call);
        if (status == CAIRN_STATUS_OK) return std::nullopt;
        return Error(status, "");
      } else {
        const Result<void> done = run(call);
        if (done) return std::nullopt;
        return done.error();
      }
    };
  }
  // The same for one that answers a question about types.
  template <class Answer, class Ask>
  static Question<Answer> answer(Ask ask) {
    return [ask = std::move(ask)](const Types& in) mutable -> std::variant<Answer, Error> {
      if constexpr (std::is_convertible_v<std::invoke_result_t<Ask&, const Types&>, Answer>) {
        Answer given = ask(in);
        return given;
      } else {
        Result<Answer> given = ask(in);
        if (!given) return given.error();
        return std::move(*given);
      }
    };
  }

  // Why the closure that ran last on this thread failed, for the library to ask: as much as a message of its holds, which it
  // cuts at a character.
  static constexpr size_t kWords = 1024;
  static char* words() noexcept {
    static thread_local char text[kWords];
    return text;
  }
  static int32_t keep(cairn_status_t status, const char* why) noexcept {
    std::snprintf(words(), kWords, "%s", why);
    return status == CAIRN_STATUS_OK ? CAIRN_STATUS_INVALID_ARGUMENT : status;
  }
  // The status of what work() gives, which throws nothing further.
  template <class Work>
  static int32_t shielded(const Work& work) noexcept {
    words()[0] = '\0';
#if defined(__cpp_exceptions)
    try {
      return kept(work());
    } catch (const Error& error) {
      return keep(error.status(), error.what());
    } catch (const std::bad_alloc&) {
      return keep(CAIRN_STATUS_OUT_OF_MEMORY, "it found no memory");
    } catch (const std::exception& error) {
      return keep(CAIRN_STATUS_INVALID_ARGUMENT, error.what());
    } catch (...) {
      return keep(CAIRN_STATUS_INVALID_ARGUMENT, "it threw what is no std::exception");
    }
#else
    return kept(work());
#endif
  }
  static int32_t kept(const std::optional<Error>& failed) noexcept {
    return failed ? keep(failed->status(), failed->what()) : CAIRN_STATUS_OK;
  }

  static Types types(const cairn_tensor_t* tensors, uint32_t count) {
    Types list;
    for (uint32_t i = 0; i < count; ++i) list.push_back(Tensor(tensors[i]).type());
    return list;
  }
  static int32_t call_shape(void* user, const cairn_tensor_t* in, cairn_tensor_t* out) {
    return shielded([&]() -> std::optional<Error> {
      const CustomOp& op = self(user);
      if (!op.shape_) {
        for (uint32_t i = 0; i < op.outputs_; ++i) out[i] = in[0];
        return std::nullopt;
      }
      const std::variant<Types, Error> answered = op.shape_(types(in, op.inputs_));
      if (const Error* failed = std::get_if<Error>(&answered)) return *failed;
      const Types& made = *std::get_if<Types>(&answered);
      if (made.size() != op.outputs_)
        return Error(CAIRN_STATUS_INVALID_ARGUMENT, "it gave " + std::to_string(made.size()) + " types for " +
                                                        std::to_string(op.outputs_) + " outputs");
      for (uint32_t i = 0; i < op.outputs_; ++i) {
        const TensorType& type = made[i];
        if (type.dims.size() > 8)
          return Error(CAIRN_STATUS_INVALID_ARGUMENT,
                       "it gave " + std::to_string(type.dims.size()) + " dimensions, of at most 8");
        out[i] = cairn_tensor_t{};
        for (size_t d = 0; d < type.dims.size(); ++d) out[i].dims[d] = type.dims[d];
        out[i].rank = static_cast<uint32_t>(type.dims.size());
        out[i].dtype = type.dtype;
      }
      return std::nullopt;
    });
  }
  static int64_t call_workspace(void* user, const cairn_tensor_t* in) {
    int64_t bytes = -1;
    const int32_t status = shielded([&]() -> std::optional<Error> {
      const std::variant<int64_t, Error> answered = self(user).workspace_(types(in, self(user).inputs_));
      if (const Error* failed = std::get_if<Error>(&answered)) return *failed;
      bytes = *std::get_if<int64_t>(&answered);
      return std::nullopt;
    });
    return status == CAIRN_STATUS_OK ? bytes : -1;
  }

  std::string name_;
  uint32_t inputs_, outputs_;
  bool recomputable_ = false;
  Question<Types> shape_;
  Question<int64_t> workspace_;
  Closure<Forward> forward_;
  Closure<Backward> backward_;
};

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn
#endif  // CAIRN_CPP_CUSTOM_OP_HPP_
