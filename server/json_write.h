/* server/json_write.h - for callers by its old name: loaders/json_write.h. */
#include "loaders/json_write.h"
