/* pictures/processor_kinds.h - what the classes of image processors have where files say nothing.
 *
 * Owns: each class's defaults, and the texts that stand around a picture's features in prompts.
 */
#ifndef PICTURES_PROCESSOR_KINDS_H
#define PICTURES_PROCESSOR_KINDS_H

#include "pictures/processor.h"

/* The defaults of a class by its name in transformers, with or without Fast or Pil at its end; false: there is none. */
bool processor_class(struct image_processor *p, const char *name);
/* Names of all classes, separated by commas. */
const char *processor_classes(void);
/* Whether the numbers go together; false with err set: one sentence that begins with name. */
bool processor_check(const struct image_processor *p, const char *name, struct error *err);

#endif
