# Pictures by gnuplot. Sourced after common.sh.
# shellcheck shell=sh disable=SC2154 # its variables are the callers'

# draw_picture NAME svg|png SETTINGS FILE: what gnuplot/NAME.gp draws, with these settings of its own. The
# data are files in $TMP, where gnuplot runs: their names are ours, whatever is in a user's.
draw_picture() {
    case $2 in
        svg) terminal=svg ;;
        *) terminal=pngcairo ;;
    esac
    cp -- "$here/gnuplot/style.gp" "$here/gnuplot/$1.gp" "$TMP"
    (cd -- "$TMP" && gnuplot -e "terminal_name='$terminal'; out='picture'; $3" "$1.gp") 2>"$TMP/err" ||
        could_not_run "gnuplot: $(grep -v ' warning: ' "$TMP/err" | grep -m 1 .)"
    cat -- "$TMP/picture" >"$4" || could_not_run "cannot write $4"
}
