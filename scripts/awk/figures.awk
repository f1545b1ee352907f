# Reads the events of one complete stream (trace_events.awk) and prints its figures as NAME=VALUE.
# All times are microseconds since the request was sent:
#
#   ttfb_us          the first byte of the body
#   first_event_us   the first event of any kind (a role, a token)
#   first_token_us   the first token
#   last_token_us    the last token
#   total_us         the last byte
#   tokens           tokens: the server's usage if it tells one, without reasoning, else what the events had
#   token_events     events that brought a token
#   counted          tokens by the events alone
#   coalesced        token events that came in the same read as the token event before
#   reads            curl's reads of the body
#   reasoning        events of reasoning before, between or after the tokens

BEGIN { FS = "\t" }

$1 == "body" { ttfb = $2 }

$1 == "event" && first_event == "" { first_event = $2 }

$1 == "event" && $4 == "token" {
    if (token_events++ == 0)
        first_token = $2
    else if ($3 == read)
        coalesced++
    read = $3
    last_token = $2
    counted += $5
}

$1 == "event" && $4 == "reasoning" { reasoning++ }

# The last one is the whole stream's.
$1 == "usage" {
    usage = $3 - $5
    thought = $5
}

$1 == "end" {
    total = $2
    reads = $4
}

END {
    print "ttfb_us=" ttfb
    print "first_event_us=" first_event
    print "first_token_us=" first_token
    print "last_token_us=" last_token
    print "total_us=" total
    # A usage that does not tell the reasoning apart says nothing of the answer.
    print "tokens=" (usage > 0 && !(reasoning && !thought) ? usage : counted + 0)
    print "token_events=" token_events + 0
    print "counted=" counted + 0
    print "coalesced=" coalesced + 0
    print "reads=" reads + 0
    print "reasoning=" reasoning + 0
}
