# Prints one value of a JSON file: awk -v path=error.message -f json.awk -f json_get.awk FILE
# A string is printed with its escapes undone and without a newline added. Exit 1: no JSON; 2: no
# such value in it.

{ text = text (NR > 1 ? "\n" : "") $0 }

END {
    if (!json_parse(text))
        exit 1
    if (!(path in JSON_TYPE))
        exit 2
    printf "%s", json_get(path)
}
