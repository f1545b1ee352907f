/*
 * The words vocabulary: text that reads like simple English, so that a person who looks at a
 * stream sees at once whether words are missing, doubled or out of order.
 *
 * Tokens come in clauses of eight: seven slots of a template, each a list of words to choose
 * from, and a closing comma or full stop. A hash of the clause picks the template, a hash of
 * the index picks the word. Words carry their leading space (all but token 0); punctuation is a
 * token of its own. What a token must know of its neighbours (is this the start of a sentence,
 * does the next word begin with a vowel) is computed from their hashes, never remembered.
 *
 * It refuses to be clever: no word whose sound and first letter disagree (hour, unit) may
 * follow an article, every verb is in the past tense so that it agrees with any subject, and
 * lists that meet in one template share no word. Lists, templates and their order are frozen.
 */
#include "base/random.h"
#include "gen/tokgen.h"

#include <stdbool.h>
#include <string.h>

struct word_list {
    const char *const *words;
    uint32_t count;
};

#define WORDS(name, ...)                                                                       \
    static const char *const name##_words[] = {__VA_ARGS__};                                   \
    static const struct word_list name = {name##_words,                                        \
                                          sizeof name##_words / sizeof name##_words[0]}

WORDS(comma, ",");
WORDS(stop, ".");

/* "a" becomes "an" where the next word asks for it. */
WORDS(a, "a");
WORDS(the, "the");
WORDS(any, "the", "the", "the", "a", "a", "this", "that", "our", "another");
WORDS(each, "every", "each", "one", "that");
WORDS(count, "two", "three", "four", "five", "six", "several", "many", "some");

WORDS(person, "teacher", "farmer", "baker", "sailor", "doctor", "painter", "gardener",
      "fisherman", "librarian", "musician", "carpenter", "shepherd", "writer", "nurse", "pilot",
      "miller", "tailor", "captain", "neighbour", "child", "grandmother", "uncle", "aunt",
      "engineer", "artist", "actor", "student", "driver", "cook", "clockmaker", "postman",
      "stranger", "traveller", "boy", "girl", "weaver", "inventor", "astronomer", "beekeeper",
      "ferryman");
WORDS(person_is, "kind", "clever", "tired", "cheerful", "patient", "young", "curious", "gentle",
      "proud", "friendly", "polite", "careful", "eager", "anxious", "absent-minded", "brave",
      "shy", "sleepy", "tall", "famous", "hungry", "wise", "unhurried", "old");
WORDS(someone, "someone", "everyone", "nobody", "somebody");
WORDS(we, "we", "they", "she", "he");

WORDS(animals, "birds", "dogs", "cats", "horses", "sheep", "ducks", "geese", "foxes", "swans",
      "goats", "rabbits", "owls", "sparrows", "donkeys", "deer", "kittens", "ponies", "herons");
WORDS(animals_are, "small", "white", "brown", "grey", "wild", "thin", "noisy", "spotted",
      "black", "lazy", "gentle", "frightened");

WORDS(thing, "lamp", "basket", "letter", "clock", "kettle", "chair", "table", "boat", "bell",
      "drum", "map", "coat", "book", "bottle", "box", "candle", "ladder", "mirror", "piano",
      "picture", "ribbon", "rope", "saddle", "scarf", "spoon", "suitcase", "umbrella", "vase",
      "violin", "wagon", "wheel", "engine", "anchor", "album", "envelope", "armchair", "key",
      "telescope", "kite", "blanket");
WORDS(thing_is, "small", "heavy", "wooden", "ancient", "empty", "ordinary", "elegant",
      "unusual", "ugly", "enormous", "odd", "expensive", "plain", "golden", "broken", "dusty",
      "beautiful", "strange", "silver", "simple", "precious", "rusty", "delicate", "light");
WORDS(things, "apples", "candles", "letters", "lanterns", "flowers", "books", "baskets",
      "blankets", "oranges", "pears", "chairs", "stories", "tools", "eggs", "bottles",
      "parcels", "newspapers", "seeds");

WORDS(place, "river", "market", "garden", "bridge", "mill", "harbour", "church", "station",
      "school", "library", "bakery", "orchard", "forest", "lake", "hill", "castle",
      "lighthouse", "farmhouse", "barn", "museum", "theatre", "square", "village", "inn",
      "canal", "meadow", "chapel", "tower", "stable", "workshop", "cottage", "gate", "well",
      "hospital", "abbey", "observatory");
WORDS(place_is, "quiet", "peaceful", "calm", "lively", "crowded", "silent", "deserted",
      "pleasant", "gloomy", "lonely", "little", "neglected");
WORDS(place_feels, "cold", "warm", "dark", "bright", "old", "clean", "green", "distant",
      "familiar", "safe", "mysterious", "beautiful");

WORDS(did, "waited", "rested", "slept", "laughed", "sang", "stood", "sat", "danced", "talked",
      "worked", "listened", "walked", "wandered", "paused", "smiled", "hummed", "lingered",
      "whistled", "stopped", "dreamed");
WORDS(did_it, "carried", "found", "painted", "mended", "sold", "lifted", "borrowed", "cleaned",
      "kept", "lost", "wanted", "noticed", "hid", "dropped", "bought", "moved", "admired",
      "remembered", "brought", "chose", "described", "examined", "forgot", "polished",
      "wrapped", "left");
WORDS(do_it, "paint", "mend", "sell", "keep", "borrow", "carry", "find", "hide", "clean", "buy",
      "move", "draw", "describe", "return", "weigh", "wrap", "examine", "polish");
WORDS(lived, "rested", "slept", "waited", "wandered", "played", "ran", "hid", "gathered",
      "stood", "sheltered", "grazed", "arrived");
WORDS(looked, "looked", "seemed", "was", "felt", "became", "remained");
WORDS(wished, "wanted", "hoped", "decided", "promised", "offered", "refused", "tried", "meant",
      "agreed", "planned");

WORDS(how, "quietly", "slowly", "softly", "calmly", "patiently", "happily", "gently",
      "carefully", "silently", "politely", "proudly", "alone", "thoughtfully", "cheerfully",
      "nervously", "gladly");
WORDS(when, "later", "yesterday", "meanwhile", "afterwards", "suddenly", "eventually", "today",
      "finally", "sometimes", "often", "once", "outside");
WORDS(where, "near", "behind", "beside", "by", "outside", "opposite", "beyond", "around");

WORDS(weather, "cold", "warm", "bright", "windy", "misty", "grey", "rainy", "mild", "icy",
      "ordinary", "cloudless", "stormy", "unforgettable", "snowy");
WORDS(daytime, "morning", "evening", "afternoon", "night", "day", "week");
WORDS(season, "spring", "summer", "autumn", "winter");
WORDS(dawn, "dawn", "dusk", "noon", "midnight", "sunset", "breakfast", "supper");

WORDS(link, "and", "but", "so", "while", "and", "yet");
WORDS(turn, "and", "but", "yet");
WORDS(until, "until", "before", "after");
WORDS(soon, "soon", "now", "then");
WORDS(again, "again", "too");
WORDS(and, "and");
WORDS(because, "because");
WORDS(in, "in");
WORDS(it, "it");
WORDS(such, "such");
WORDS(that, "that");
WORDS(there, "there");
WORDS(to, "to");
WORDS(was, "was");
WORDS(were, "were");

#define CLAUSE_TOKENS 8
#define CLAUSE_SLOTS  (CLAUSE_TOKENS - 1)

struct clause {
    const struct word_list *slots[CLAUSE_SLOTS];
};

static const struct clause openings[] = {
    {{&the, &person_is, &person, &did_it, &a, &thing_is, &thing}},
    {{&any, &person, &did, &how, &where, &the, &place}},
    {{&when, &comma, &any, &person_is, &person, &did, &how}},
    {{&any, &thing, &where, &the, &place, &looked, &thing_is}},
    {{&count, &animals_are, &animals, &lived, &where, &the, &place}},
    {{&the, &animals_are, &animals, &lived, &where, &the, &place}},
    {{&any, &person, &did_it, &things, &where, &the, &place}},
    {{&the, &animals, &lived, &stop, &any, &person, &did}},
    {{&someone, &did_it, &the, &thing, &where, &the, &place}},
    {{&we, &did_it, &the, &thing, &and, &did, &how}},
    {{&it, &was, &a, &weather, &daytime, &in, &season}},
    {{&there, &was, &a, &thing, &where, &the, &place}},
    {{&there, &were, &count, &things, &where, &the, &place}},
    {{&any, &person, &wished, &to, &do_it, &the, &thing}},
    {{&each, &daytime, &the, &person, &did_it, &a, &thing}},
    {{&how, &comma, &any, &person, &did_it, &the, &thing}},
    {{&where, &the, &place, &comma, &any, &person, &did}},
    {{&the, &place_is, &place, &looked, &place_feels, &that, &daytime}},
    {{&the, &person, &did, &and, &the, &animals, &lived}},
};

/* After a comma. */
static const struct clause continuations[] = {
    {{&link, &the, &person, &did_it, &a, &thing_is, &thing}},
    {{&link, &the, &person, &did, &where, &the, &place}},
    {{&link, &someone, &did_it, &the, &thing, &until, &dawn}},
    {{&turn, &soon, &the, &place, &looked, &place_feels, &again}},
    {{&link, &count, &animals, &lived, &where, &the, &place}},
    {{&link, &the, &person, &wished, &to, &do_it, &it}},
    {{&link, &the, &place_is, &place, &looked, &place_feels, &again}},
    {{&link, &we, &did, &how, &where, &the, &place}},
    {{&because, &it, &was, &such, &a, &weather, &daytime}},
    {{&link, &any, &thing, &looked, &thing_is, &until, &dawn}},
};

#define COUNT_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* Keeps the hashes of clauses apart from those of words; frozen. */
#define CLAUSE_SALT UINT64_C(0xc1a05eb0a7d6e395)

static bool ends_with_comma(uint64_t seed, uint64_t clause);
static uint64_t clause_hash(uint64_t seed, uint64_t clause);
static const char *word_at(uint64_t seed, uint64_t index, const struct word_list *list);
static uint32_t pick(uint64_t hash, uint32_t of_count);
static bool begins_with_vowel(const char *word);
static size_t put(const char *word, bool space, bool capital, char *buf, size_t cap);

size_t tokgen_words_token(uint64_t seed, uint64_t index, char *buf, size_t cap)
{
    uint64_t clause = index / CLAUSE_TOKENS;
    uint32_t slot = (uint32_t)(index % CLAUSE_TOKENS);

    if (slot == CLAUSE_SLOTS)
        return put(ends_with_comma(seed, clause) ? "," : ".", false, false, buf, cap);

    bool continues = clause > 0 && ends_with_comma(seed, clause - 1);
    uint64_t hash = clause_hash(seed, clause);
    const struct clause *chosen = continues
                                      ? &continuations[pick(hash, COUNT_OF(continuations))]
                                      : &openings[pick(hash, COUNT_OF(openings))];
    const struct word_list *list = chosen->slots[slot];
    const char *word = word_at(seed, index, list);
    bool punctuation = list == &comma || list == &stop;
    bool capital = slot == 0 ? !continues : chosen->slots[slot - 1] == &stop;

    if (strcmp(word, "a") == 0 && slot + 1 < CLAUSE_SLOTS &&
        begins_with_vowel(word_at(seed, index + 1, chosen->slots[slot + 1])))
        word = "an";
    return put(word, !punctuation && index > 0, capital, buf, cap);
}

/* A clause in four ends with a comma, and never two in a row: no sentence has three clauses. */
static bool ends_with_comma(uint64_t seed, uint64_t clause)
{
    return (clause_hash(seed, clause) & 1) != 0 &&
           (clause == 0 || (clause_hash(seed, clause - 1) & 1) == 0);
}

static uint64_t clause_hash(uint64_t seed, uint64_t clause)
{
    return random_at(seed ^ CLAUSE_SALT, clause);
}

static const char *word_at(uint64_t seed, uint64_t index, const struct word_list *list)
{
    return list->words[pick(random_at(seed, index), list->count)];
}

/* 0..count-1 from the high half of a hash, by multiplication: no division, next to no bias. */
static uint32_t pick(uint64_t hash, uint32_t of_count)
{
    return (uint32_t)(((hash >> 32) * of_count) >> 32);
}

static bool begins_with_vowel(const char *word)
{
    return strchr("aeiou", word[0]) != NULL;
}

static size_t put(const char *word, bool space, bool capital, char *buf, size_t cap)
{
    size_t len = strlen(word);

    if (len + space > cap)
        return 0;
    if (space)
        *buf++ = ' ';
    memcpy(buf, word, len);
    if (capital)
        buf[0] = (char)(buf[0] - 'a' + 'A');
    return len + space;
}
