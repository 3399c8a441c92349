/* vision/images.h - pictures for a language model: its image encoder, and what that makes of pictures, for sessions
 * (runtime/session/session_pictures.h).
 *
 * Owns: that encoder and model belong together, and the keys of pictures.
 */
#ifndef VISION_IMAGES_H
#define VISION_IMAGES_H

#include "include/jitrun.h"
#include "vision/tower.h"

struct image_features;

/* From now on sessions that are opened take pictures of this tower. False: err, as the tower is another model's. */
bool images_attach(const struct tower *t, jit_model *m, struct error *err);
/* The features of a picture, or of tiles of one. NULL: err; else picture_release() is due. */
struct image_features *images_encode(struct tower *t, const struct tower_pixels *p, struct error *err);

#endif
