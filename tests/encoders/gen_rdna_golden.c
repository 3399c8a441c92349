/* tests/encoders/gen_rdna_golden.c - prints tests/golden/rdna.txt, by asking an installed llvm-mc. Run it after a
 * change of rdna.def. */
#include "tests/encoders/rdna_assembler.h"
#include "tests/encoders/rdna_golden.h"

int main(void)
{
	char why[1024];
	const char *assembler = rdna_assembler();

	if (!assembler) {
		fprintf(stderr, "gen_rdna_golden: no llvm-mc of version 19 or later on PATH\n");
		return 1;
	}
	if (rdna_golden_write(stdout, assembler, why, sizeof why))
		return 0;
	fprintf(stderr, "gen_rdna_golden: %s\n", why);
	return 1;
}
