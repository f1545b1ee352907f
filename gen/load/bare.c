/* Blocking connects, one epoll set, and no more than that. */

#include "gen/load/bare.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum { EVENTS_A_TURN = 4096, READ_BYTES = 4096, RAMP_US = 300000, FIRST_US = 200000 };

static int64_t cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return ((int64_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

/* A connection on which the request has been sent; -1 with errno. */
static int ask(int epoll, int port, const char *request)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
        send(fd, request, strlen(request), MSG_NOSIGNAL) > 0 &&
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Reads until then; how many reads there were. */
static uint64_t read_until(int epoll, int64_t end_us)
{
    static struct epoll_event events[EVENTS_A_TURN];
    char bytes[READ_BYTES];
    uint64_t reads = 0;
    int64_t now_us;

    while ((now_us = clock_monotonic_us()) < end_us) {
        int count =
            epoll_wait(epoll, events, EVENTS_A_TURN, (int)((end_us - now_us) / 1000) + 1);
        for (int i = 0; i < count; i++) {
            if (recv(events[i].data.fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
                reads++;
            else
                epoll_ctl(epoll, EPOLL_CTL_DEL, events[i].data.fd, NULL);
        }
    }
    return reads;
}

static int measure(struct bare *bare, int epoll, int *fds, int port, uint64_t streams,
                   uint64_t gap_us, int seconds)
{
    char request[128];
    int64_t began_us = clock_monotonic_us();
    /* As in the self-test's own steps: spread over whole gaps. */
    int64_t ramp_us = (RAMP_US / (int64_t)gap_us + 1) * (int64_t)gap_us;

    snprintf(request, sizeof(request),
             "GET /?tokens=%" PRIu64 "&first_us=%d&gap_us=%" PRIu64 " HTTP/1.1\r\n\r\n",
             (uint64_t)(seconds * 1000000 + 2 * ramp_us) / gap_us + 2, FIRST_US, gap_us);
    for (uint64_t i = 0; i < streams; i++) {
        fds[i] = ask(epoll, port, request);
        if (fds[i] < 0)
            return -1;
        read_until(epoll, began_us + ramp_us * (int64_t)(i + 1) / (int64_t)streams);
    }
    read_until(epoll, clock_monotonic_us() + FIRST_US);
    int64_t start_us = clock_monotonic_us();
    int64_t used_us = cpu_us();
    uint64_t reads = read_until(epoll, start_us + (int64_t)seconds * 1000000);
    used_us = cpu_us() - used_us;
    bare->reads_per_s = (double)reads * 1e6 / (double)(clock_monotonic_us() - start_us);
    bare->cpu_us = reads > 0 ? (double)used_us / (double)reads : 0;
    return 0;
}

int bare_measure(struct bare *bare, int port, uint64_t streams, uint64_t gap_us, int seconds)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int *fds = malloc(streams * sizeof(int));
    int status = -1;

    if (fds != NULL)
        memset(fds, -1, streams * sizeof(int));
    if (epoll >= 0 && fds != NULL)
        status = measure(bare, epoll, fds, port, streams, gap_us, seconds);
    for (uint64_t i = 0; fds != NULL && i < streams; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    free(fds);
    if (epoll >= 0)
        close(epoll);
    return status;
}
