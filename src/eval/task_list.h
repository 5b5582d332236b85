// The tasks and groups there are: one file in src/eval/tasks and one line in tasks.inc each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "eval/task.h"
#include "eval/task_definition.h"

namespace octavo {

std::vector<TaskDefinition> AllTasks();
std::vector<TaskGroup> AllGroups();

// Tasks in the order in which they are asked for, each once, and the groups that lead to them.
struct TaskSelection {
  std::vector<Task> tasks;
  std::vector<TaskGroup> groups;
};
// `own` are tasks besides those of the list, all of which are taken, too, first. NotFound for a
// name that is neither a task nor a group, with the nearest; AlreadyExists for an own task of such
// a name.
Result<TaskSelection> SelectTasks(std::span<const std::string> names,
                                  std::optional<int64_t> num_fewshot,
                                  std::span<const TaskDefinition> own = {});

// The tasks under a group, through its groups. `groups` holds them all.
std::vector<std::string> TasksOfGroup(const TaskGroup& group, std::span<const TaskGroup> groups);

}  // namespace octavo
