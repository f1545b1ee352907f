# The lines of a text as one line, joined with \n as a JSON string has it.
{ printf "%s%s", (NR > 1 ? "\\n" : ""), $0 }
