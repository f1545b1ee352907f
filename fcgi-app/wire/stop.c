/* The search for stop sequences; the header says why it is this one. */

#include "wire/stop.h"

#include <string.h>

enum stop_status stop_add(struct stop_sequences *sequences, const char *text, size_t len)
{
    if (len == 0)
        return STOP_EMPTY;
    if (len > STOP_SEQUENCE_MAX_BYTES)
        return STOP_TOO_LONG;
    if (sequences->count == STOP_SEQUENCES_MAX)
        return STOP_TOO_MANY;

    struct stop_sequence *added = &sequences->sequence[sequences->count++];
    added->len = len;
    memcpy(added->text, text, len);
    added->border[0] = 0;
    for (size_t i = 1; i < len; i++) {
        size_t border = added->border[i - 1];
        while (border > 0 && text[i] != text[border])
            border = added->border[border - 1];
        added->border[i] = (uint16_t)(border + (text[i] == text[border]));
    }
    return STOP_ADDED;
}

/* How many bytes of the sequence the text ends with, one byte later. */
static size_t advance(const struct stop_sequence *sequence, size_t matched, char byte)
{
    while (matched > 0 && sequence->text[matched] != byte)
        matched = sequence->border[matched - 1];
    return matched + (sequence->text[matched] == byte);
}

size_t stop_read(struct stop_search *search, const struct stop_sequences *sequences,
                 const char *text, size_t len, size_t *found)
{
    for (size_t at = 0; at < len; at++) {
        size_t longest = 0;
        for (size_t i = 0; i < sequences->count; i++) {
            const struct stop_sequence *sequence = &sequences->sequence[i];
            size_t matched = advance(sequence, search->matched[i], text[at]);
            if (matched == sequence->len) {
                longest = matched > longest ? matched : longest;
                matched = sequence->border[matched - 1]; /* for a caller who reads on */
            }
            search->matched[i] = (uint16_t)matched;
        }
        if (longest > 0) {
            *found = longest;
            return at + 1;
        }
    }
    return 0;
}

size_t stop_pending(const struct stop_search *search)
{
    size_t most = 0;

    for (size_t i = 0; i < STOP_SEQUENCES_MAX; i++) {
        if (search->matched[i] > most)
            most = search->matched[i];
    }
    return most;
}
