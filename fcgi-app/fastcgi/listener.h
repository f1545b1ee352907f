#ifndef RUNNEL_FASTCGI_LISTENER_H
#define RUNNEL_FASTCGI_LISTENER_H

#include <stdint.h>

/*
 * The listening socket: the one that spawn-fcgi left on descriptor 0, or one of our own.
 * libfcgi's own FCGX_OpenSocket binds every address and exits when it cannot, so it is not
 * used.
 */

struct listener {
    int fd;
    char unlink_path[108]; /* of a Unix socket that we made, else "" */
};

enum { LISTENER_ERROR_MAX_BYTES = 300 };

/* Whether `where` is spelled as --listen takes it, without opening anything. 0, or -1 with
 * `error`. */
int listener_check(const char *where, char error[LISTENER_ERROR_MAX_BYTES]);

/* `where` as in --listen. The socket is non-blocking and close-on-exec; `mode` is for a Unix
 * socket that is made, `peer_timeout_us` for TCP (fastcgi/tcp.h). 0, or -1 with `error`. */
int listener_open(struct listener *listener, const char *where, unsigned mode,
                  int64_t peer_timeout_us, char error[LISTENER_ERROR_MAX_BYTES]);

/* Close it, and remove a Unix socket that we made. */
void listener_close(struct listener *listener);

#endif
