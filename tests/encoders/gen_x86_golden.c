/* tests/encoders/gen_x86_golden.c - prints tests/golden/x86.txt, by asking an installed llvm-mc. Run it after a change
 * of x86.def. */
#include "tests/encoders/x86_golden.h"

int main(void)
{
	char why[1024];
	const char *assembler = x86_golden_assembler();

	if (!assembler) {
		fprintf(stderr, "gen_x86_golden: no llvm-mc on PATH\n");
		return 1;
	}
	if (x86_golden_write(stdout, assembler, why, sizeof why))
		return 0;
	fprintf(stderr, "gen_x86_golden: %s\n", why);
	return 1;
}
