/* programs/jitrun/jitrun_fetch.c - models that are not here yet: jitrun pull, and -hf. */
#include <stdlib.h>

#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/run_pull.h"

int jitrun_pull(int argc, char **argv) { return run_pull("jitrun", argv); }

int jitrun_fetch(void)
{
	static char *path; /* for as long as the program runs */

	if (!opt.hf_repo)
		return opt.hf_file ? jitrun_usage("--hf-file goes with --hf-repo") : 0;
	if (opt.model)
		return jitrun_usage("two models: one by name or path, and that of --hf-repo");
	if (opt.offline)
		setenv("HF_HUB_OFFLINE", "1", 1);
	int status = run_pull_for("jitrun", opt.hf_repo, opt.hf_file, opt.quiet, &path);
	opt.model = path;
	return status;
}
