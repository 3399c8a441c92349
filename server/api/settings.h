/* server/api/settings.h - what a task's tokens are chosen by, as JSON. */
#ifndef SERVER_SETTINGS_H
#define SERVER_SETTINGS_H

#include <jansson.h>

#include "server/engine/task.h"

/* All of it, under the names that llama.cpp's server has. The caller's. */
json_t *task_settings(const struct task *t);

#endif
