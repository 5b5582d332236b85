// A brother, a stranger and a file that is named without its folder.
#include <boost/any.hpp>

#include "io.h"
#  include "text/text.h"
#include NAME
