/* programs/common/adapter_args.c - adapters as options name them. */
#include "programs/common/adapter_args.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool adapter_args_cut(char *path, float *scale)
{
	char *colon = strrchr(path, ':'), *end;

	*scale = 1;
	if (!colon || !colon[1] || strchr(colon, '/'))
		return false;
	errno = 0;
	const float s = strtof(colon + 1, &end);
	if (*end || errno == ERANGE || !isfinite(s))
		return false;
	*colon = 0;
	*scale = s;
	return true;
}
