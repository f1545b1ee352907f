/* The options of TCP sockets: tcp(7), and what net/ipv4/tcp_timer.c of Linux makes of them. */

#include "fastcgi/tcp.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { PROBES = 5 }; /* that go unanswered in the second half of the timeout */

static int get(int fd, int level, int option)
{
    int value = 0;
    socklen_t len = sizeof(value);

    return getsockopt(fd, level, option, &value, &len) == 0 ? value : -1;
}

static int set(int fd, int level, int option, int64_t value)
{
    int number = (int)value;

    return setsockopt(fd, level, option, &number, sizeof(number));
}

static bool is_tcp(int fd)
{
    int domain = get(fd, SOL_SOCKET, SO_DOMAIN);

    return (domain == AF_INET || domain == AF_INET6) &&
           get(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP;
}

static int64_t round_up(int64_t us, int64_t unit_us)
{
    return (us + unit_us - 1) / unit_us;
}

/*
 * TCP_USER_TIMEOUT bounds how long what was sent may go unacknowledged: else it is sent again
 * for a quarter of an hour. In a silence nothing is on its way, and keepalive asks. Its times
 * are whole seconds.
 */
static int set_peer_timeout(int fd, int64_t us)
{
    const int64_t second_us = 1000000;

    if (set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, round_up(us, 1000)) != 0 ||
        set(fd, IPPROTO_TCP, TCP_KEEPIDLE, round_up(us, 2 * second_us)) != 0 ||
        set(fd, IPPROTO_TCP, TCP_KEEPINTVL, round_up(us, 2 * PROBES * second_us)) != 0 ||
        set(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES) != 0)
        return -1;
    return set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

int tcp_set_options(int fd, int64_t peer_timeout_us)
{
    if (!is_tcp(fd))
        return 0;
    /* With Nagle's algorithm a token waits until the one before has been acknowledged. */
    if (set(fd, IPPROTO_TCP, TCP_NODELAY, 1) != 0)
        return -1;
    return peer_timeout_us > 0 ? set_peer_timeout(fd, peer_timeout_us) : 0;
}

unsigned tcp_peer_timeout_ms(int fd)
{
    int ms = get(fd, IPPROTO_TCP, TCP_USER_TIMEOUT); /* -1 on a Unix socket */

    return ms > 0 ? (unsigned)ms : 0;
}

void tcp_limit_writing(int fd, unsigned peer_timeout_ms, bool limited)
{
    if (peer_timeout_ms > 0)
        set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, limited ? peer_timeout_ms : 0);
}

bool tcp_has_unsent(int fd)
{
    int bytes = 0;

    return ioctl(fd, SIOCOUTQNSD, &bytes) == 0 && bytes > 0;
}
