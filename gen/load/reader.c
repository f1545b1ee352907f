/*
 * The event stream reader. Each byte is looked at once, for the end of its line; a line is then
 * known by its first bytes.
 */

#include "gen/load/reader.h"

#include <string.h>

static const char byte_order_mark[] = "\xef\xbb\xbf";

void reader_init(struct reader *reader, reader_take take, void *context)
{
    *reader = (struct reader){.take = take, .context = context, .first_line = true};
    buffer_init(&reader->line, READER_EVENT_MAX_BYTES);
    buffer_init(&reader->lines, READER_EVENT_MAX_BYTES);
}

void reader_free(struct reader *reader)
{
    buffer_free(&reader->line);
    buffer_free(&reader->lines);
}

static void forget_event(struct reader *reader)
{
    buffer_reset(&reader->lines);
    reader->in_place = NULL;
    reader->name[0] = '\0';
    reader->has_data = false;
}

void reader_restart(struct reader *reader)
{
    buffer_reset(&reader->line);
    forget_event(reader);
    reader->skip_lf = false;
    reader->first_line = true;
}

bool reader_is_inside(const struct reader *reader)
{
    return reader->has_data || reader->line.len > 0;
}

/* What lies in a read that is about to be gone, or is not the only line of its event. */
static int keep(struct reader *reader)
{
    if (reader->in_place == NULL)
        return 0;
    int status = buffer_append(&reader->lines, reader->in_place, reader->in_place_len);
    reader->in_place = NULL;
    return status == 0 ? 0 : READER_TOO_LONG;
}

static int take_data(struct reader *reader, const char *value, size_t len)
{
    if (!reader->has_data) {
        reader->has_data = true;
        reader->in_place = value;
        reader->in_place_len = len;
        return 0;
    }
    if (keep(reader) != 0 || buffer_append_char(&reader->lines, '\n') != 0 ||
        buffer_append(&reader->lines, value, len) != 0)
        return READER_TOO_LONG;
    return 0;
}

static void take_name(struct reader *reader, const char *value, size_t len)
{
    if (len > READER_NAME_MAX_BYTES)
        len = READER_NAME_MAX_BYTES;
    memcpy(reader->name, value, len);
    reader->name[len] = '\0';
}

static int end_event(struct reader *reader)
{
    int status = 0;

    if (reader->has_data) {
        struct reader_event event = {
            .name = reader->name, .data = reader->in_place, .data_len = reader->in_place_len};
        if (event.data == NULL) {
            event.data = reader->lines.len > 0 ? reader->lines.data : "";
            event.data_len = reader->lines.len;
        }
        status = reader->take(reader->context, &event);
    }
    forget_event(reader);
    return status;
}

/* Whether the line is the field `name`; then where its value begins. */
static bool is_field(const char *line, size_t len, const char *name, size_t *value)
{
    size_t name_len = strlen(name);

    if (len < name_len || memcmp(line, name, name_len) != 0)
        return false;
    if (len == name_len) { /* no colon: the value is empty */
        *value = len;
        return true;
    }
    if (line[name_len] != ':')
        return false;
    *value = name_len + 1;
    if (*value < len && line[*value] == ' ')
        ++*value;
    return true;
}

static int take_line(struct reader *reader, const char *line, size_t len)
{
    size_t value;

    if (reader->first_line) {
        reader->first_line = false;
        if (len >= 3 && memcmp(line, byte_order_mark, 3) == 0) {
            line += 3;
            len -= 3;
        }
    }
    if (len == 0)
        return end_event(reader);
    if (is_field(line, len, "data", &value))
        return take_data(reader, line + value, len - value);
    if (is_field(line, len, "event", &value))
        take_name(reader, line + value, len - value);
    return 0; /* a comment, or a field of no interest */
}

/* The end of a line that began in an earlier read. Its bytes stay where they are until this
 * read ends. */
static int take_cut_line(struct reader *reader, const char *bytes, size_t len)
{
    if (buffer_append(&reader->line, bytes, len) != 0)
        return READER_TOO_LONG;
    int status = take_line(reader, reader->line.data, reader->line.len);
    buffer_reset(&reader->line);
    return status;
}

int reader_feed(struct reader *reader, const char *bytes, size_t len)
{
    const char *end = bytes + len;
    const char *line = bytes;

    for (const char *at = bytes; at < end; at++) {
        if (*at != '\n' && *at != '\r') {
            reader->skip_lf = false;
            continue;
        }
        if (*at == '\n' && reader->skip_lf) {
            reader->skip_lf = false;
            line = at + 1;
            continue;
        }
        size_t line_len = (size_t)(at - line);
        int status = reader->line.len > 0 ? take_cut_line(reader, line, line_len)
                                          : take_line(reader, line, line_len);
        if (status != 0)
            return status;
        reader->skip_lf = *at == '\r';
        line = at + 1;
    }
    if (keep(reader) != 0 ||
        (line < end && buffer_append(&reader->line, line, (size_t)(end - line)) != 0))
        return READER_TOO_LONG;
    return 0;
}
