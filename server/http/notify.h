/* server/http/notify.h - what a service manager is told (systemd's $NOTIFY_SOCKET). */
#ifndef SERVER_NOTIFY_H
#define SERVER_NOTIFY_H

/* "READY=1", "STOPPING=1". Nothing happens where nobody asked to be told. */
void notify(const char *state);

#endif
