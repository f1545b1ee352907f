# The blocks of the Lua module (*_by_lua_block) have Lua in them, whose strings, comments and long brackets
# hide braces: functions for nginx_read.awk, which calls feed_lua() with pieces of lines.
#
# LUA_OPEN is how many braces are open, LUA_MODE what the text is in: "" code, a quote, "comment" to the end
# of the line, or what closes a long bracket ("]==]").

function feed_lua(s,    i, c, n) {
    s = LUA_TAIL s
    LUA_TAIL = ""
    while (s != "") {
        if (LUA_MODE == "comment")
            return ""
        if (LUA_MODE == "\"" || LUA_MODE == "'") {
            i = match_quote(s, LUA_MODE)
            if (i == 0)
                return ""
            c = substr(s, i, 1)
            if (c == "\\" && i == length(s))
                return lua_keep(s, i)
            s = substr(s, i + (c == "\\" ? 2 : 1))
            if (c != "\\")
                LUA_MODE = ""
        } else if (LUA_MODE != "") {
            # A long bracket: LUA_MODE is what closes it.
            i = index(s, LUA_MODE)
            if (i == 0)
                return lua_keep(s, length(s) - length(LUA_MODE) + 2)
            s = substr(s, i + length(LUA_MODE))
            LUA_MODE = ""
        } else {
            i = match(s, /[{}"'[-]/)
            if (i == 0)
                return ""
            s = substr(s, i)
            c = substr(s, 1, 1)
            if (c == "{")
                LUA_OPEN++
            else if (c == "}") {
                if (--LUA_OPEN == 0) {
                    T_MODE = ""
                    return substr(s, 2)
                }
            } else if (c == "\"" || c == "'")
                LUA_MODE = c
            else if (c == "-") {
                if (s ~ /^-(-(\[=*)?)?$/)
                    return lua_keep(s, 1)
                if (substr(s, 2, 1) == "-") {
                    LUA_MODE = "comment"
                    s = substr(s, 2)
                    if (match(s, /^-\[=*\[/)) {
                        lua_long(RLENGTH - 3)
                        s = substr(s, RLENGTH)
                    }
                }
            } else if (match(s, /^\[=*\[/)) {
                lua_long(RLENGTH - 2)
                s = substr(s, RLENGTH)
            } else if (s ~ /^\[=*$/)
                return lua_keep(s, 1)
            s = substr(s, 2)
        }
    }
    return ""
}

function lua_long(equals) {
    LUA_MODE = "]"
    while (equals-- > 0)
        LUA_MODE = LUA_MODE "="
    LUA_MODE = LUA_MODE "]"
}

# The end of a slice may be the beginning of what the next one decides.
function lua_keep(s, from) {
    if (from < 1)
        from = 1
    LUA_TAIL = substr(s, from)
    if (length(LUA_TAIL) > 4096)
        nginx_fail(CUR_FILE, CUR_LINE, "a bracket of more than 4096 characters")
    return ""
}

# Neither a line's comment, nor a bracket, nor an escape goes on behind a newline; a string does.
function lua_newline() {
    if (LUA_MODE == "comment")
        LUA_MODE = ""
    LUA_TAIL = ""
}
