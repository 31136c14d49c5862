#include "runtime/generate/generator.h"

#include <algorithm>

#include "runtime/base/os/clock.h"
#include "runtime/formats/codecs.h"

namespace cairn::generate {
namespace {

using engine::Session;
using graph::JointGraph;

// A value by its name, of this shape and dtype; -1 where there is none and it may be left out.
int32_t operand(const JointGraph& joint, std::string_view name, const TensorDesc& wanted) {
  const int32_t value = joint.find(name);
  if (value < 0) return -1;
  const TensorDesc& found = joint.values[static_cast<size_t>(value)].desc;
  require(found.dtype == wanted.dtype && found.shape == wanted.shape, Code::kInvalidArgument, "'", name,
          "' is ", to_string(found), "; a program that generates text has it as ", to_string(wanted));
  return value;
}

TensorDesc numbers(std::initializer_list<int64_t> dims) { return {DType::kI32, Shape(dims)}; }

}  // namespace

Generator::Program Generator::program(std::shared_ptr<Session> session) const {
  const JointGraph& joint = *session->plan().joint;
  require(!joint.forward->trains(), Code::kInvalidArgument,
          "a program that trains generates no text; give one with outputs and no loss");
  const int32_t tokens = joint.find("tokens"), logits = joint.find("logits");
  require(tokens >= 0 && logits >= 0, Code::kInvalidArgument,
          "a program that generates text has the input 'tokens' and the output 'logits'; '",
          tokens < 0 ? "tokens" : "logits", "' is missing");
  const TensorDesc &of_tokens = joint.values[static_cast<size_t>(tokens)].desc,
                   &of_logits = joint.values[static_cast<size_t>(logits)].desc;
  require(of_tokens.dtype == DType::kI32 && of_tokens.shape.rank == 2, Code::kInvalidArgument, "'tokens' is ",
          to_string(of_tokens), "; wanted: i32[samples, tokens of each]");
  const int64_t b = of_tokens.shape[0], t = of_tokens.shape[1];
  require(is_float(of_logits.dtype) && of_logits.dtype != DType::kF64 && of_logits.shape.rank == 2 &&
              of_logits.shape[0] == b,
          Code::kInvalidArgument, "'logits' is ", to_string(of_logits), "; wanted: a row for each of ", b,
          " samples, in at most 32 bits");
  return {.session = session,
          .length = t,
          .tokens = tokens,
          .logits = logits,
          .position = operand(joint, "position", numbers({b})),
          .positions = operand(joint, "positions", numbers({b, t})),
          .count = operand(joint, "count", numbers({b})),
          .lengths = operand(joint, "lengths", numbers({b})),
          .last = operand(joint, "last", numbers({b}))};
}

void Generator::find_caches() {
  const JointGraph& joint = *programs_[0].session->plan().joint;
  for (const graph::Op& op : joint.forward->ops()) {
    if (op.code != ops::OpCode::k_append) continue;
    const graph::Value& cache = joint.forward->values()[static_cast<size_t>(op.in[0])];
    const Shape& shape = cache.desc.shape;
    require(shape.rank >= 3 && shape[0] == samples_, Code::kInvalidArgument, "cache '", cache.name, "' is ",
            to_string(cache.desc), "; wanted: [", samples_, " samples, tokens, ..]");
    rings_ |= op.attrs.integer("ring") != 0;
    if (op.attrs.integer("ring") == 0) capacity_ = std::min(capacity_.value_or(shape[1]), shape[1]);
  }
  for (const graph::JointValue& value : joint.values)
    if (value.role == graph::Role::kCache && value.alias_of < 0) cache_bytes_ += value.desc.bytes();
}

Generator::Generator(std::vector<std::shared_ptr<Session>> sessions, int64_t vocabulary) {
  require(!sessions.empty(), Code::kInvalidArgument, "a generator needs a program");
  for (std::shared_ptr<Session>& session : sessions) {
    require(session->shares_store(*sessions[0]), Code::kWrongState,
            "programs of a generator share a store; these were made apart");
    programs_.push_back(program(session));
  }
  std::ranges::sort(programs_, {}, &Program::length);
  require(programs_[0].length == 1, Code::kInvalidArgument,
          "a generator needs a program for one token of each sample; the shortest here has ",
          programs_[0].length);
  const auto logits = [](const Program& of) -> const Shape& {
    return of.session->plan().joint->values[static_cast<size_t>(of.logits)].desc.shape;
  };
  for (const Program& other : programs_)
    require(logits(other) == logits(programs_[0]), Code::kInvalidArgument, "'logits' is ",
            to_string(logits(programs_[0])), " in one program and ", to_string(logits(other)), " in another");
  samples_ = logits(programs_[0])[0], vocabulary_ = logits(programs_[0])[1];
  require(vocabulary >= 0 && vocabulary <= vocabulary_, Code::kInvalidArgument, "the vocabulary of ",
          vocabulary, " tokens is larger than the model's, ", vocabulary_);
  if (vocabulary > 0) vocabulary_ = vocabulary;
  all_.resize(static_cast<size_t>(samples_));
  find_caches();
}

Generator::Sample& Generator::at(int64_t sample) {
  require(sample >= 0 && sample < samples_, Code::kInvalidArgument, "there is no sample ", sample,
          "; there are ", samples_);
  return all_[static_cast<size_t>(sample)];
}

std::span<const float> Generator::logits(int64_t sample) const { return at(sample).logits; }

void Generator::begin(int64_t sample, std::span<const int32_t> prompt, const Sampling& sampling) {
  Sample& of = at(sample);
  check(sampling);
  require(!prompt.empty(), Code::kInvalidArgument, "a prompt needs a token");
  for (const int32_t token : prompt)
    require(token >= 0 && token < vocabulary_, Code::kInvalidArgument, "token ", token,
            " is outside of the vocabulary, 0 to ", vocabulary_ - 1);
  const auto tokens = static_cast<int64_t>(prompt.size());
  require(!capacity_ || tokens <= *capacity_, Code::kInvalidArgument, "the prompt has ", tokens,
          " tokens; the cache holds ", capacity_.value_or(0));
  of = {.tokens = {prompt.begin(), prompt.end()}, .active = true, .sampling = sampling};
}

void Generator::extend(int64_t sample, std::span<const int32_t> text, const Sampling& sampling) {
  const Sample& before = at(sample);
  const auto read = before.tokens.begin() + before.read;
  const int64_t same =
      std::mismatch(before.tokens.begin(), read, text.begin(), text.end()).first - before.tokens.begin();
  const int64_t kept =
      std::min(same, static_cast<int64_t>(text.size()) - 1);  // the last token's logits are wanted
  const bool whole = kept == before.read || !rings_;
  begin(sample, text, sampling);
  if (whole) at(sample).read = std::max<int64_t>(kept, 0);
}

void Generator::end(int64_t sample) { at(sample).active = false; }

void Generator::read(const Program& of, std::span<const int64_t> counts, bool prompts) {
  of.session->pack();  // once for all tokens to come
  const double began = now();
  const auto b = static_cast<size_t>(samples_), t = static_cast<size_t>(of.length);
  std::vector<int32_t> tokens(b * t), positions(b * t), position(b), count(b), lengths(b), last(b);
  for (size_t i = 0; i < b; ++i) {
    const Sample& sample = all_[i];
    const auto from = sample.tokens.begin() + sample.read;
    std::copy(from, from + counts[i], tokens.begin() + static_cast<int64_t>(i * t));
    // Where there is nothing to read, any place in reach will do.
    position[i] = static_cast<int32_t>(counts[i] > 0 ? sample.read : 0);
    for (size_t j = 0; j < t; ++j)
      positions[i * t + j] = position[i] + static_cast<int32_t>(static_cast<int64_t>(j) < counts[i] ? j : 0);
    count[i] = static_cast<int32_t>(counts[i]);
    lengths[i] = position[i] + count[i];
    last[i] = static_cast<int32_t>(i * t) + std::max(count[i] - 1, 0);
    (sample.logits.empty() ? prefill_ : decode_).tokens += counts[i];
  }
  Session& session = *of.session;
  const auto write = [&](int32_t value, const std::vector<int32_t>& from) {
    if (value >= 0) session.write_declared(value, from.data());
  };
  write(of.tokens, tokens);
  write(of.positions, positions);
  write(of.position, position);
  write(of.count, count);
  write(of.lengths, lengths);
  write(of.last, last);
  session.run({.step = runs_++});
  const TensorDesc& logits = session.plan().joint->values[static_cast<size_t>(of.logits)].desc;
  const int64_t columns = logits.shape[1], bytes = dtype_bytes(logits.dtype);
  for (size_t i = 0; i < b; ++i) {
    Sample& sample = all_[i];
    sample.read += counts[i];
    if (counts[i] == 0 || sample.read < static_cast<int64_t>(sample.tokens.size())) continue;
    sample.logits.resize(static_cast<size_t>(vocabulary_));
    row_.resize(static_cast<size_t>(vocabulary_ * bytes));
    session.read_at(of.logits, static_cast<int64_t>(i) * columns * bytes, row_.data(), vocabulary_ * bytes);
    formats::codec(logits.dtype).decode(row_.data(), vocabulary_, sample.logits.data());
  }
  (prompts ? prefill_ : decode_).seconds += now() - began;
}

void Generator::next(std::span<int32_t> out) {
  require(static_cast<int64_t>(out.size()) == samples_, Code::kInvalidArgument, "room for ", out.size(),
          " tokens; there are ", samples_, " samples");
  for (size_t i = 0; i < all_.size(); ++i)
    require(!all_[i].active || !capacity_ || static_cast<int64_t>(all_[i].tokens.size()) <= *capacity_,
            Code::kInvalidArgument, "sample ", i, " has ", all_[i].tokens.size(), " tokens; the cache holds ",
            capacity_.value_or(0));
  const auto unread = [](const Sample& sample) {
    return sample.active ? static_cast<int64_t>(sample.tokens.size()) - sample.read : 0;
  };
  std::vector<int64_t> counts(all_.size());
  for (;;) {
    int64_t fresh = 0, most = 0;  // tokens of the longest prompt that nothing was read of; of any sample
    bool prompts = false;
    for (const Sample& sample : all_) {
      const int64_t left = unread(sample);
      if (sample.read == 0) fresh = std::max(fresh, left);
      most = std::max(most, left);
      prompts |= left > 0 && sample.logits.empty();
    }
    if (most == 0) break;
    // A program for many tokens sees no cache, so it begins texts; the rest of one that is longer goes token by token.
    const bool begins = fresh > 1 && programs_.size() > 1;
    const auto fits = std::ranges::find_if(programs_, [&](const Program& of) { return of.length >= fresh; });
    const Program& of = !begins ? programs_[0] : fits != programs_.end() ? *fits : programs_.back();
    for (size_t i = 0; i < all_.size(); ++i)
      counts[i] = begins && all_[i].read > 0 ? 0 : std::min(unread(all_[i]), of.length);
    read(of, counts, prompts);
  }
  for (size_t i = 0; i < all_.size(); ++i)
    out[i] = all_[i].active ? sampler_.draw(all_[i].logits, all_[i].tokens, all_[i].sampling) : kNoToken;
  for (size_t i = 0; i < all_.size(); ++i)
    if (all_[i].active) all_[i].tokens.push_back(out[i]);
}

}  // namespace cairn::generate
