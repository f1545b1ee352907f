# Reads the body of an SSE stream with LF line ends and prints the text of its tokens, joined; it ends
# at [DONE]. awk -f json.awk -f stream_text.awk FILE. Exit 1: an event is not JSON, or has no token.

/^data:/ {
    data = substr($0, 6)
    sub(/^ /, "", data)
    if (data == "[DONE]")
        exit
    if (!json_parse(data) || !("token" in JSON_TYPE)) {
        bad = 1
        exit
    }
    printf "%s", json_get("token")
}

END { exit bad + 0 }
