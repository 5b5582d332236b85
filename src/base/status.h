// Status and Result (octavo/status.h) with the macros that hand errors on.
#pragma once

#include "base/check.h"
#include "octavo/status.h"

#define OCTAVO_CONCAT_(a, b) a##b
#define OCTAVO_CONCAT(a, b) OCTAVO_CONCAT_(a, b)

// Returns from the calling function when `expression` (a Status) is an error.
#define OCTAVO_RETURN_IF_ERROR(expression)           \
  do {                                               \
    ::octavo::Status octavo_status_ = (expression);  \
    if (!octavo_status_.ok()) return octavo_status_; \
  } while (false)

// OCTAVO_ASSIGN_OR_RETURN(auto x, MakeX()): declares or assigns x, or returns MakeX()'s error.
#define OCTAVO_ASSIGN_OR_RETURN(target, expression) \
  OCTAVO_ASSIGN_OR_RETURN_(OCTAVO_CONCAT(octavo_result_, __LINE__), target, expression)
#define OCTAVO_ASSIGN_OR_RETURN_(result, target, expression) \
  auto result = (expression);                                \
  if (!result.ok()) return result.status();                  \
  target = std::move(result).value()
