/* pictures/processor_plan.h - how a picture becomes parts: sizes, tiles and crops, before any pixel is computed. */
#ifndef PICTURES_PROCESSOR_PLAN_H
#define PICTURES_PROCESSOR_PLAN_H

#include "pictures/processor_size.h"

struct steps {
	struct size first;    /* the picture is resized to this; its own size where nothing is resized */
	struct size second;   /* and that to this; the same where there is no second step */
	struct size grid;     /* tiles that the result is cut into; { 1, 1 }: it is one part */
	struct size part;     /* of a tile, or of the crop of the one part */
	int64_t left, top;    /* where the one part's crop begins; below 0: black is added around */
	struct size whole;    /* of the small whole picture behind tiles; width 0: there is none */
	bool whole_of_second; /* it is made of what the tiles are cut from, and else of the picture */
};

/* The steps for a picture of size s; false with err set where the processor refuses it. */
bool steps_plan(const struct image_processor *p, struct size s, struct steps *out, struct error *err);

#endif
