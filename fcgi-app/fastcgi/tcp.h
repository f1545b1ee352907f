#ifndef RUNNEL_FASTCGI_TCP_H
#define RUNNEL_FASTCGI_TCP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What TCP needs and a Unix socket does not: tokens that leave at once, and an end for
 * connections whose other host has vanished (no FIN, no RST: a cable, a power cut). Everything
 * here leaves sockets that are not TCP as they are.
 */

/*
 * Set up a listening socket, or one that was accepted. Linux hands the options of a listener on
 * to what connects from then on, but not to what has connected already. After
 * `peer_timeout_us` without a sign of life a connection fails with ETIMEDOUT, whether or not
 * anything is sent meanwhile; 0: when the kernel gives up. 0, or -1 with errno.
 */
int tcp_set_options(int fd, int64_t peer_timeout_us);

/* The peer timeout that an accepted socket was given; 0: none, or not TCP. */
unsigned tcp_peer_timeout_ms(int fd);

/*
 * Whether that timeout runs while bytes wait in the socket. Linux then lets it also end a
 * connection whose peer answers but has no room (its window is shut): a client that does not
 * read, which must not be taken for a host that has vanished.
 */
void tcp_limit_writing(int fd, unsigned peer_timeout_ms, bool limited);

/* Whether bytes wait for the peer to have room for them. */
bool tcp_has_unsent(int fd);

#endif
