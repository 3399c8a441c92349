/* programs/jitrun/jitrun_command.c - options of the commands whose answer is a table: one of them runs in a process. */
#include "programs/jitrun/jitrun_parts.h"

struct jitrun_command jitrun_command;

const struct option_row jitrun_command_rows[JITRUN_COMMAND_ROWS] = {
	{ .name = "json",
	  .kind = OPTION_FLAG,
	  .help = "print one JSON line instead of a table",
	  .target = &jitrun_command.json },
	OPTION_ABOUT(jitrun_command.about),
};
