// The tree of a parsed template.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/builtins.h"
#include "text/jinja/operators.h"
#include "text/jinja/value.h"

namespace octavo::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

// What children[0], children[1] ... are is said behind each kind.
enum class ExpressionKind {
  kConstant,     // constant
  kName,         // name
  kList,         // items
  kTuple,        // items
  kDict,         // key, value, key, value ...
  kAttribute,    // object; name
  kItem,         // object, key
  kSlice,        // object, start, stop, step (null where left out)
  kCall,         // callee; arguments
  kFilter,       // value (null inside {% filter %}); name, builtin, arguments
  kTest,         // value; name, builtin, arguments
  kNegate,       // operand
  kPositive,     // operand
  kNot,          // operand
  kAnd,          // left, right
  kOr,           // left, right
  kBinary,       // left, right; binary_operator
  kConcat,       // two or more parts of a ~ b ~ c
  kCompare,      // first operand, second ...; comparisons between them
  kConditional,  // value, condition, other value (null: undefined)
};

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr star;         // *arguments
  ExpressionPtr double_star;  // **arguments
};

struct Expression {
  ExpressionKind kind;
  int line = 1;
  int depth = 1;  // levels of tree below and with this one
  std::string name;
  Value constant;
  BinaryOperator binary_operator = BinaryOperator::kAdd;
  std::vector<Comparison> comparisons;
  std::vector<ExpressionPtr> children;
  CallArguments arguments;
  const Builtin* builtin = nullptr;  // null: unknown, an error once it is reached
};

// Where {% set %}, {% for %} and {% with %} put values: a name, name.attribute of a namespace, or a
// tuple of targets.
struct Target {
  std::string name;
  std::string attribute;
  std::vector<Target> items;  // not empty: a tuple
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

enum class StatementKind {
  kText,   // text
  kPrint,  // expressions[0]
  kIf,     // expressions[i] guards blocks[i]; one block more is the else
  kFor,    // target; expressions: iterable, filter (or null); blocks: body, else
  kBreak,
  kContinue,
  kSet,          // target; expressions[0]
  kSetBlock,     // target; expressions[0]: filter chain or null; blocks[0]
  kWith,         // targets; expressions: their values; blocks[0]
  kMacro,        // macro
  kCallBlock,    // expressions[0]: the call; macro: what caller() is
  kFilterBlock,  // expressions[0]: filter chain; blocks[0]
  kBlock,        // name; blocks[0]
  kAutoescape,   // expressions[0]; blocks[0]
  kGeneration,   // blocks[0]
  kNoLoader,     // include, import, extends: compiles, and fails when it is reached
};

struct Macro {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  // of the last parameters
  Block body;
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
};

struct Statement {
  StatementKind kind;
  int line = 1;
  std::string name;  // of a block; of the tag in messages otherwise
  std::string text;
  Target target;
  std::vector<Target> targets;
  std::vector<ExpressionPtr> expressions;
  std::vector<Block> blocks;
  std::shared_ptr<Macro> macro;
  bool recursive = false;
};

struct ParsedTemplate {
  Block body;
  std::map<std::string, const Statement*> blocks;  // each {% block %} by name
};

}  // namespace octavo::jinja
