/* server/control/page.h - the web page, chat.html, as the build puts it into the program. */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include <stddef.h>

extern const unsigned char page_bytes[];
extern const size_t page_size;

#endif
