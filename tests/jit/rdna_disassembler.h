/* tests/jit/rdna_disassembler.h - what an installed llvm-objdump reads in our code objects, and what llvm-mc makes of
 * its words.
 *
 * Owns: the set of different instructions met, and both ways. The rule: it shares nothing with encoders/. Failures fail
 * the test that runs.
 */
#ifndef TESTS_RDNA_DISASSEMBLER_H
#define TESTS_RDNA_DISASSEMBLER_H

#include <stddef.h>
#include <stdint.h>

/* Different instructions by their bytes: equal bytes are read as equal words. */
struct rdna_words {
	struct rdna_word {
		char *text, *hex;
	} * word;
	size_t n, capacity;
	uint32_t *slot;
	size_t slots;
	uint64_t met;
};
void rdna_words_clear(struct rdna_words *w);

/* The name of an llvm-objdump of an llvm-mc that knows all targets; skips the test, saying so, when there is none. */
const char *rdna_disassembler(void);
/* Adds what it reads in some files (names as a shell takes them); every word must be an instruction. */
void rdna_disassemble(struct rdna_words *w, const char *tool, const char *files);
/* The words, assembled for the target, must be the bytes they were read from. */
void rdna_assemble_back(const struct rdna_words *w, const char *target);

#endif
