# What all pictures share. terminal_name, files (a list of numbers) and out come from scripts/plot.
set terminal terminal_name size 1000,560 font ",13" background rgb "white"
set output out
set datafile separator tab
set encoding utf8
set border 3 lc rgb "#888888"
set tics nomirror out tc rgb "#333333"
set grid lc rgb "#e4e4e4" lt 1 lw 1
set key noenhanced autotitle columnhead
set style line 1 lc rgb "#1b6ca8" pt 7 ps 0.6 lw 2
set style line 2 lc rgb "#d1495b" pt 7 ps 0.6 lw 2
set style line 3 lc rgb "#2e8b57" pt 7 ps 0.6 lw 2
set style line 4 lc rgb "#b8860b" pt 7 ps 0.6 lw 2
set style line 5 lc rgb "#7b5ea7" pt 7 ps 0.6 lw 2
set style line 6 lc rgb "#555555" pt 7 ps 0.6 lw 2
