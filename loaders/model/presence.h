/* loaders/model/presence.h - whether a field of a model's files must be there. */
#ifndef LOADERS_MODEL_PRESENCE_H
#define LOADERS_MODEL_PRESENCE_H

enum presence { OPTIONAL, REQUIRED };

#endif
