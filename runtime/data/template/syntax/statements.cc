#include "runtime/data/template/syntax/statements.h"

namespace cairn::templates {
namespace {

std::shared_ptr<Scope> inner(Run& run) { return std::make_shared<Scope>(run.scope); }

// The text of a body that has a scope of its own.
std::string text_of(Run& run, const Body& body) {
  return run.captured([&] {
    const InScope scope(run, inner(run));
    work(run, body);
  });
}

}  // namespace

Flow work(Run& run, const Body& body) {
  for (const auto& statement : body) {
    const Run::Deeper deeper(run, statement->line);
    if (const Flow flow = statement->work(run); flow != Flow::kOn) return flow;
  }
  return Flow::kOn;
}

void Target::set(Run& run, Value value) const {
  if (!parts.empty()) {
    std::vector<Value> each = run.each(value);
    if (each.size() != parts.size())
      wrong("cannot unpack ", each.size(), " values into ", parts.size(), " names");
    for (size_t i = 0; i < parts.size(); ++i) parts[i].set(run, std::move(each[i]));
  } else if (attribute.empty()) {
    run.scope->set(name, std::move(value));
  } else {
    const Value to = run.lookup(name);
    if (!to.is(Kind::kNamespace))
      wrong("'", run.name(name), "' is no namespace: its attributes cannot be set");
    if (attribute[0] == '_') wrong("an attribute of a namespace must not begin with '_': '", attribute, "'");
    static_cast<Namespace*>(to.object())->set(attribute, std::move(value));
  }
}

Flow Data::work(Run& run) const {
  run.print(text);
  return Flow::kOn;
}

Flow Print::work(Run& run) const {
  run.print(evaluated(run, *shown));
  return Flow::kOn;
}

Flow If::work(Run& run) const {
  for (const auto& [condition, body] : branches)
    if (evaluated(run, *condition).truth()) return templates::work(run, body);
  return templates::work(run, otherwise);
}

Flow For::work(Run& run) const { return over_items(run, run.each(evaluated(run, *over)), 0); }

Flow For::over_items(Run& run, std::vector<Value> items, int depth) const {
  const auto loop = std::make_shared<Loop>(&run.meter, std::move(items));
  const std::shared_ptr<Scope> outer = run.scope;
  loop->depth0 = depth;
  // What the loop holds must not hold the loop: these are called while this function runs alone.
  if (condition != nullptr)
    loop->passes = [this, &run, &outer](const Value& item) {
      const InScope scope(run, std::make_shared<Scope>(outer));
      target.set(run, item);
      return evaluated(run, *condition).truth();
    };
  if (recursive)
    loop->again = [this, depth, &outer](Run& other, const Value& more) {
      return other.text(other.captured([&] {
        const InScope scope(other, outer);
        over_items(other, other.each(more), depth + 1);
      }));
    };
  struct Ended {
    Loop& loop;
    ~Ended() {
      loop.passes = nullptr;
      loop.again = nullptr;
      loop.next = loop.items.size();
    }
  } const ended{*loop};
  const Value value = Value::of(Kind::kLoop, loop);
  bool any = false;
  while (loop->advance()) {
    run.meter.step(4);
    const InScope scope(run, std::make_shared<Scope>(outer));
    run.scope->set(loop_name, value);
    target.set(run, loop->current);
    const Flow flow = templates::work(run, body);
    any |= flow == Flow::kOn;  // in jinja2, what is left by break or continue alone counts as no items
    if (flow == Flow::kBreak) break;
  }
  if (any) return Flow::kOn;
  const InScope scope(run, std::make_shared<Scope>(outer));
  return templates::work(run, otherwise);
}

Flow Set::work(Run& run) const {
  target.set(run, evaluated(run, *given));
  return Flow::kOn;
}

Flow SetBlock::work(Run& run) const {
  Value made = run.text(text_of(run, body));
  if (filter != nullptr) made = static_cast<const Filter&>(*filter).of(run, &made);
  target.set(run, std::move(made));
  return Flow::kOn;
}

Flow FilterBlock::work(Run& run) const {
  const Value block = run.text(text_of(run, body));
  run.print(static_cast<const Filter&>(*filter).of(run, &block));
  return Flow::kOn;
}

Flow Macro::work(Run& run) const {
  run.scope->set(name, macro_value(run, macro));
  return Flow::kOn;
}

Flow CallBlock::work(Run& run) const {
  const Value given = macro_value(run, caller);
  run.print(static_cast<const Call&>(*call).called(run, &given));
  return Flow::kOn;
}

Flow With::work(Run& run) const {
  const std::shared_ptr<Scope> scope = inner(run);
  std::vector<Value> made;
  for (const auto& [target, expression] : values) made.push_back(evaluated(run, *expression));
  const InScope within(run, scope);
  for (size_t i = 0; i < values.size(); ++i) values[i].first.set(run, std::move(made[i]));
  return templates::work(run, body);
}

}  // namespace cairn::templates
