/* Other processes, as /proc tells of them. */

#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct process {
    char state;       /* field 3 of /proc/PID/stat; 0: it cannot be told */
    uint64_t started; /* field 22 */
};

static struct process look_at(int32_t pid)
{
    char path[32];
    char text[1024];
    char state;
    unsigned long long started;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return (struct process){0};
    ssize_t len = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (len <= 0)
        return (struct process){0};
    text[len] = '\0';
    const char *rest = strrchr(text, ')'); /* the name before it may hold anything */
    if (rest == NULL ||
        sscanf(
            rest + 1,
            " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
            &state, &started) != 2)
        return (struct process){0};
    return (struct process){.state = state, .started = started};
}

uint64_t process_start_time(int32_t pid)
{
    return look_at(pid).started;
}

bool process_is_alive(int32_t pid, uint64_t started)
{
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return false;
    struct process now = look_at(pid);
    if (now.state == 'Z' || now.state == 'X')
        return false;
    return now.state == 0 || started == 0 || now.started == started;
}

bool process_is_running(int32_t pid)
{
    char state = look_at(pid).state;

    return process_is_alive(pid, 0) && state != 'T' && state != 't';
}
