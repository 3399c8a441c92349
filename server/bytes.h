/* server/bytes.h - for callers by its old name: base/bytes.h. */
#include "base/bytes.h"
