# Compares figures (second file: name value) with thresholds (first: name limit aim); exit 1 when a limit is exceeded.
# `without` names a kind of figures that cannot be measured here.
BEGIN { printf "%-26s %10s %10s %10s\n", "per request", "measured", "limit", "aim" }
/^#/ || NF < 2 { next }
FNR == NR { limit[$1] = $2; aim[$1] = $3; order[++count] = $1; next }
{ value[$1] = $2; if (!($1 in limit)) order[++count] = $1 }
END {
    for (i = 1; i <= count; i++) {
        name = order[i]
        verdict = ""
        before = failed
        if (!(name in value) && without != "" && name ~ "[.]" without "$") verdict = "not measured"
        else if (!(name in value)) { verdict = "NOT MEASURED"; failed++ }
        else if (!(name in limit)) { verdict = "NO THRESHOLD"; failed++ }
        else if (value[name] + 0 > limit[name] + 0) { verdict = "EXCEEDED"; failed++ }
        else if (aim[name] != "-" && value[name] + 0 > aim[name] + 0) verdict = "aim not reached"
        line = sprintf("%-26s %10s %10s %10s  %s", name, value[name], limit[name], aim[name], verdict)
        print line
        if (failed > before) faults = faults line "\n"
    }
    # Again at the end, where someone who sees only the last lines finds them.
    if (failed) printf "bench: %d of %d figures are not within their limits:\n%s", failed, count, faults
    exit failed > 0
}
