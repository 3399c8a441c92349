#include "programs/common/version.h"

#include "base/error.h"
#include "jit/target.h"

void version_print(const char *program, const char *version, FILE *out)
{
	struct error why = { 0 };
	const struct target *t = target_native(&why);

	fprintf(out, "%s %s", program, version);
	if (*version_commit)
		fprintf(out, " (commit %s)", version_commit);
	if (t)
		fprintf(out, "\nx86-64, code for this CPU: %s\n", t->name);
	else
		fprintf(out, "\nx86-64, no code for this CPU: %s\n", why.text);
}
