// Loops, macros and blocks as values.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/operators.h"
#include "text/jinja/scope.h"

namespace octavo::jinja {

// The variable `loop`.
class LoopObject : public CallableObject, public std::enable_shared_from_this<LoopObject> {
 public:
  LoopObject(Interpreter& interpreter, const Statement& statement, ScopePtr scope,
             std::vector<Value> items, int depth)
      : interpreter_(interpreter),
        statement_(statement),
        scope_(std::move(scope)),
        items_(std::move(items)),
        depth0_(depth) {}

  std::string_view type_name() const override { return "LoopContext"; }
  bool callable() const override { return statement_.recursive; }
  std::string Print() const override {
    return fmt::format("<LoopContext {}/{}>", at_ + 1, items_.size());
  }
  void Clear() override {
    items_.clear();
    last_changed_.clear();
    scope_.reset();
  }

  const std::vector<Value>& items() const { return items_; }
  void MoveTo(size_t at) { at_ = at; }

  bool GetAttribute(std::string_view name, Value* value) override;

  Result<Value> Call(Runtime&, Arguments arguments) override {
    if (arguments.positional.size() != 1 || !arguments.named.empty()) {
      return TypeError("loop() takes one argument");
    }
    std::string text;
    std::string* const before = std::exchange(interpreter_.out_, &text);
    const ScopePtr scope = scope_;
    const auto flow = interpreter_.RunLoop(statement_, scope, arguments.positional[0], depth0_ + 1);
    interpreter_.out_ = before;
    if (!flow.ok()) return flow.status();
    return Value::String(std::move(text), interpreter_.runtime_.autoescape);
  }

  Result<Value> Cycle(const Arguments& arguments) const {
    if (arguments.positional.empty()) return TypeError("no items for cycling given");
    return arguments.positional[at_ % arguments.positional.size()];
  }

  // Whether the arguments differ from those of the call before.
  Result<Value> Changed(Arguments arguments) {
    const bool same = called_changed_ &&
                      std::equal(last_changed_.begin(), last_changed_.end(),
                                 arguments.positional.begin(), arguments.positional.end(), Equal);
    called_changed_ = true;
    if (!same) last_changed_ = std::move(arguments.positional);
    return Value::Bool(!same);
  }

 private:
  Interpreter& interpreter_;
  const Statement& statement_;
  ScopePtr scope_;
  std::vector<Value> items_;
  int depth0_;
  size_t at_ = 0;
  bool called_changed_ = false;
  std::vector<Value> last_changed_;
};

namespace {

class LoopMethod : public CallableObject {
 public:
  LoopMethod(std::shared_ptr<LoopObject> loop, bool is_cycle)
      : loop_(std::move(loop)), is_cycle_(is_cycle) {}
  std::string_view type_name() const override { return "method"; }
  Result<Value> Call(Runtime&, Arguments arguments) override {
    if (!arguments.named.empty()) return TypeError("no keyword arguments are taken");
    return is_cycle_ ? loop_->Cycle(arguments) : loop_->Changed(std::move(arguments));
  }

 private:
  std::shared_ptr<LoopObject> loop_;
  bool is_cycle_;
};

}  // namespace

bool LoopObject::GetAttribute(std::string_view name, Value* value) {
  const auto at = static_cast<int64_t>(at_);
  const auto size = static_cast<int64_t>(items_.size());
  if (name == "index") {
    *value = Value::Int(at + 1);
  } else if (name == "index0") {
    *value = Value::Int(at);
  } else if (name == "revindex") {
    *value = Value::Int(size - at);
  } else if (name == "revindex0") {
    *value = Value::Int(size - at - 1);
  } else if (name == "first") {
    *value = Value::Bool(at == 0);
  } else if (name == "last") {
    *value = Value::Bool(at + 1 >= size);
  } else if (name == "length") {
    *value = Value::Int(size);
  } else if (name == "depth") {
    *value = Value::Int(depth0_ + 1);
  } else if (name == "depth0") {
    *value = Value::Int(depth0_);
  } else if (name == "previtem") {
    *value = at > 0 ? items_[at_ - 1] : Value::UndefinedBecause("there is no previous item");
  } else if (name == "nextitem") {
    *value = at + 1 < size ? items_[at_ + 1] : Value::UndefinedBecause("there is no next item");
  } else if (name == "cycle" || name == "changed") {
    *value = Value::MakeObject(std::make_shared<LoopMethod>(shared_from_this(), name == "cycle"));
  } else {
    return false;
  }
  return true;
}

Result<std::vector<Value>> Interpreter::LoopItems(const Statement& statement, const ScopePtr& scope,
                                                  const Value& iterable) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime_, iterable));
  const ExpressionPtr& filter = statement.expressions[1];
  if (filter == nullptr) return items;
  std::vector<Value> kept;
  for (Value& item : items) {
    const auto inner = std::make_shared<Scope>(scope);
    OCTAVO_RETURN_IF_ERROR(Assign(statement.target, item, *inner, scope));
    OCTAVO_ASSIGN_OR_RETURN(const Value passes, Evaluate(*filter, inner));
    if (passes.Truthy()) kept.push_back(std::move(item));
  }
  return kept;
}

Result<Flow> Interpreter::ExecuteFor(const Statement& statement, const ScopePtr& scope) {
  OCTAVO_ASSIGN_OR_RETURN(const Value iterable, Evaluate(*statement.expressions[0], scope));
  return RunLoop(statement, scope, iterable, 0);
}

Result<Flow> Interpreter::RunLoop(const Statement& statement, const ScopePtr& scope,
                                  const Value& iterable, int depth) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Value> items, LoopItems(statement, scope, iterable));
  const auto loop = std::make_shared<LoopObject>(*this, statement, scope, std::move(items), depth);
  const Value loop_value = Value::MakeObject(loop);
  bool completed_one = false;  // a round that break or continue ended does not count
  for (size_t i = 0; i < loop->items().size(); ++i) {
    loop->MoveTo(i);
    OCTAVO_RETURN_IF_ERROR(runtime_.ChargeSteps(1));
    const auto inner = std::make_shared<Scope>(scope);
    inner->Set("loop", loop_value);
    OCTAVO_RETURN_IF_ERROR(Assign(statement.target, loop->items()[i], *inner, scope));
    OCTAVO_ASSIGN_OR_RETURN(const Flow flow, ExecuteBlock(statement.blocks[0], inner));
    if (flow == Flow::kBreak) break;
    completed_one |= flow == Flow::kNext;
  }
  // Somebody else may still hold the loop: two for loop and loop_value.
  if (loop.use_count() > 2) {
    OCTAVO_RETURN_IF_ERROR(runtime_.ChargeBytes(256));
    runtime_.Keep(loop);
  }
  if (completed_one) return Flow::kNext;
  return ExecuteBlock(statement.blocks[1], std::make_shared<Scope>(scope));
}

class MacroObject : public CallableObject {
 public:
  MacroObject(Interpreter& interpreter, const Macro& macro, ScopePtr scope)
      : interpreter_(interpreter), macro_(macro), scope_(std::move(scope)) {}

  std::string_view type_name() const override { return "Macro"; }
  std::string Print() const override { return "<Macro '" + macro_.name + "'>"; }
  void Clear() override { scope_.reset(); }

  bool GetAttribute(std::string_view name, Value* value) override {
    if (name == "name") {
      *value = Value::String(macro_.name);
    } else if (name == "arguments") {
      std::vector<Value> names;
      for (const std::string& parameter : macro_.parameters) {
        names.push_back(Value::String(parameter));
      }
      *value = Value::MakeTuple(std::move(names));
    } else if (name == "catch_kwargs") {
      *value = Value::Bool(macro_.uses_kwargs);
    } else if (name == "catch_varargs") {
      *value = Value::Bool(macro_.uses_varargs);
    } else if (name == "caller") {
      *value = Value::Bool(macro_.uses_caller);
    } else {
      return false;
    }
    return true;
  }

  Result<Value> Call(Runtime& runtime, Arguments arguments) override {
    const auto scope = std::make_shared<Scope>(scope_);
    OCTAVO_RETURN_IF_ERROR(Bind(runtime, std::move(arguments), scope));
    return interpreter_.Capture(macro_.body, scope, nullptr);
  }

 private:
  // The argument of that name, taken out; nothing where it was not given.
  static bool Take(Arguments* arguments, std::string_view name, Value* value) {
    const auto found = std::find_if(arguments->named.begin(), arguments->named.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (found == arguments->named.end()) return false;
    *value = std::move(found->second);
    arguments->named.erase(found);
    return true;
  }

  Status Bind(Runtime& runtime, Arguments arguments, const ScopePtr& scope) {
    const size_t count = macro_.parameters.size();
    const size_t without_default = count - macro_.defaults.size();
    OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(count + arguments.positional.size()));
    for (size_t i = 0; i < count; ++i) {
      const std::string& name = macro_.parameters[i];
      Value value = Value::UndefinedBecause("parameter '" + name + "' was not provided");
      Value named;
      const bool has_named = Take(&arguments, name, &named);
      if (i < arguments.positional.size()) {
        if (has_named) return TypeError("the argument '" + name + "' is given twice");
        value = arguments.positional[i];
      } else if (has_named) {
        value = std::move(named);
      } else if (i >= without_default) {
        OCTAVO_ASSIGN_OR_RETURN(
            value, interpreter_.Evaluate(*macro_.defaults[i - without_default], scope));
      }
      scope->Set(name, std::move(value));
    }
    if (macro_.uses_caller) {
      Value caller = Value::UndefinedBecause("no caller defined");
      Take(&arguments, "caller", &caller);
      scope->Set("caller", std::move(caller));
    }
    return BindRest(std::move(arguments), scope);
  }

  Status BindRest(Arguments arguments, const ScopePtr& scope) {
    const size_t count = macro_.parameters.size();
    if (macro_.uses_varargs) {
      std::vector<Value> rest;
      for (size_t i = count; i < arguments.positional.size(); ++i) {
        rest.push_back(arguments.positional[i]);
      }
      scope->Set("varargs", Value::MakeTuple(std::move(rest)));
    } else if (arguments.positional.size() > count) {
      return TypeError(
          fmt::format("macro '{}' takes not more than {} argument(s)", macro_.name, count));
    }
    if (macro_.uses_kwargs) {
      Dict rest;
      for (auto& [name, value] : arguments.named) rest.Set(Value::String(name), std::move(value));
      scope->Set("kwargs", Value::MakeDict(std::move(rest)));
    } else if (!arguments.named.empty()) {
      return TypeError(fmt::format("macro '{}' takes no keyword argument '{}'", macro_.name,
                                   arguments.named[0].first));
    }
    return OkStatus();
  }

  Interpreter& interpreter_;
  const Macro& macro_;
  ScopePtr scope_;
};

Value Interpreter::MakeMacro(const Macro& macro, const ScopePtr& scope) {
  auto object = std::make_shared<MacroObject>(*this, macro, scope);
  runtime_.Keep(object);
  return Value::MakeObject(std::move(object));
}

class BlockFunction : public CallableObject {
 public:
  BlockFunction(Interpreter& interpreter, const Statement& block)
      : interpreter_(interpreter), block_(block) {}
  std::string_view type_name() const override { return "BlockReference"; }
  Result<Value> Call(Runtime&, Arguments arguments) override {
    if (!arguments.positional.empty() || !arguments.named.empty()) {
      return TypeError("a block takes no arguments");
    }
    return interpreter_.Capture(block_.blocks[0], std::make_shared<Scope>(interpreter_.root_),
                                nullptr);
  }

 private:
  Interpreter& interpreter_;
  const Statement& block_;
};

namespace {

// The variable `self`: blocks by name.
class BlockReferences : public Object {
 public:
  explicit BlockReferences(std::unordered_map<std::string, Value> blocks)
      : blocks_(std::move(blocks)) {}
  std::string_view type_name() const override { return "TemplateReference"; }
  bool GetAttribute(std::string_view name, Value* value) override {
    const auto found = blocks_.find(std::string(name));
    if (found == blocks_.end()) return false;
    *value = found->second;
    return true;
  }

 private:
  std::unordered_map<std::string, Value> blocks_;
};

}  // namespace

Value Interpreter::MakeBlockReferences() {
  std::unordered_map<std::string, Value> blocks;
  for (const auto& [name, block] : parsed_.blocks) {
    blocks.emplace(name, Value::MakeObject(std::make_shared<BlockFunction>(*this, *block)));
  }
  return Value::MakeObject(std::make_shared<BlockReferences>(std::move(blocks)));
}

}  // namespace octavo::jinja
