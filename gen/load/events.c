/* The event file; a failed write is told when it is closed. */

#include "gen/load/events.h"

#include <errno.h>
#include <inttypes.h>

int events_open(struct events *events, const char *path, uint64_t streams)
{
    *events = (struct events){.streams = streams};
    if (path == NULL)
        return 0;
    events->file = fopen(path, "we");
    if (events->file == NULL)
        return -1;
    fputs("# stream\tus\tread\tkind\ttokens\n", events->file);
    return 0;
}

void events_write(struct events *events, uint64_t stream, int64_t us, uint64_t read,
                  const char *kind, uint64_t tokens)
{
    if (events->file == NULL || stream >= events->streams)
        return;
    fprintf(events->file, "%" PRIu64 "\t%" PRId64 "\t%" PRIu64 "\t%s\t%" PRIu64 "\n", stream,
            us, read, kind, tokens);
}

int events_close(struct events *events)
{
    FILE *file = events->file;

    if (file == NULL)
        return 0;
    events->file = NULL;
    int failed = ferror(file);
    if (fclose(file) != 0)
        return -1;
    if (failed)
        errno = EIO;
    return failed ? -1 : 0;
}
