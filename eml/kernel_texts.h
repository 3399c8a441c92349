/* eml/kernel_texts.h - levels.jk and formulas.jk as arrays, which make writes. */
#ifndef EML_KERNEL_TEXTS_H
#define EML_KERNEL_TEXTS_H

#include <stddef.h>

extern const unsigned char eml_levels_text[], eml_formulas_text[];
extern const size_t eml_levels_bytes, eml_formulas_bytes;

#endif
