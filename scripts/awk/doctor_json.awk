# The doctor's result as JSON: awk -f json.awk -f doctor_json.awk FIGURES FINDINGS (NAME=VALUE lines; LEVEL,
# CODE, QUESTION, SENTENCE in columns). Figures that are numbers are written as such.

FILENAME == ARGV[1] {
    value = substr($0, index($0, "=") + 1)
    figures = figures (figures == "" ? "" : ",") "\n  " json_quote(substr($0, 1, index($0, "=") - 1)) ":" \
              (value ~ /^(0|[1-9][0-9]*)(\.[0-9]+)?$/ ? value : json_quote(value))
}

FILENAME == ARGV[2] {
    split($0, part, "\t")
    findings = findings (findings == "" ? "" : ",") "\n  {\"level\":" json_quote(part[1]) ",\"code\":" json_quote(part[2]) \
               ",\"question\":" json_quote(part[3]) ",\"finding\":" json_quote(part[4]) "}"
}

END { print "{\"figures\":{" figures "},\n \"findings\":[" findings "]}" }
