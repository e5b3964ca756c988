/// Writes files so that `--undo` can take everything back.
let setupScriptRecord = #"""
    # The record names everything that was written, one "KIND PATH" in a line, in the order in which it was written:
    #   directory PATH   was made
    #   new PATH         did not exist
    #   old PATH         existed; the backup has what it contained
    #   newblock PATH, oldblock PATH   the same for a file of which only a marked block is ours
    #   store COMMAND    made the system read its certificates anew
    #   nss DIRECTORY    a database of NSS has the certificate; newnss: the database was made for it
    remember() {
        grep -qxF -- "$1 $2" "$root$record" 2>/dev/null && return
        printf '%s %s\n' "$1" "$2" >>"$root$record"
    }

    is_remembered() {
        for kind in new old newblock oldblock; do
            grep -qxF -- "$kind $1" "$root$record" 2>/dev/null && return
        done
        return 1
    }

    begin_record() {
        umask 022
        missing=
        parent=$directory
        while [ ! -d "$root$parent" ]; do
            missing="$parent $missing"
            parent=${parent%/*}
        done
        mkdir -p "$root$directory" || fail "cannot make $root$directory"
        : >>"$root$record" || fail "cannot write $root$record"
        for parent in $missing; do remember directory "$parent"; done
    }

    make_directory() {
        [ -d "$root$1" ] && return
        make_directory "${1%/*}"
        mkdir "$root$1" || fail "cannot make $root$1"
        remember directory "$1"
    }

    backup_of() { printf '%s%s/%s' "$root" "$backups" "$(printf '%s' "$1" | tr / %)"; }

    # Keeps what a file contains before it is changed for the first time. $1: its path. $2: "block", or empty for a file of ours.
    keep() {
        make_directory "${1%/*}"
        is_remembered "$1" && return
        if [ -e "$root$1" ] || [ -L "$root$1" ]; then
            [ -d "$root$backups" ] || mkdir -m 700 "$root$backups" || fail "cannot make $root$backups"
            cp -p "$root$1" "$(backup_of "$1")" || fail "cannot keep a copy of $root$1"
            remember "old$2" "$1"
        else
            remember "new$2" "$1"
        fi
    }

    # Writes standard input to a file of ours.
    write_file() {
        cat >"$work/content"
        keep "$1" ''
        [ -L "$root$1" ] && rm -f "$root$1"
        cmp -s "$work/content" "$root$1" || cat "$work/content" >"$root$1" || fail "cannot write $root$1"
        say "  $1"
    }

    block_begin='larder setup: begin'
    block_end='larder setup: end'

    # Copies standard input without our block.
    without_block() {
        awk -v first="$block_begin" -v last="$block_end" '
            index($0, first) { skip = 1 }
            !skip { print }
            index($0, last) { skip = 0 }'
    }

    # Writes standard input into a file as a block between two comments: behind or before the first line that is $3, or at the end.
    # $2: where: after, before or end. $4, $5: what begins and ends a comment. Fails if the file has no such line; nothing changed then.
    write_block() {
        cat >"$work/block"
        if [ -e "$root$1" ]; then without_block <"$root$1" >"$work/rest"; else : >"$work/rest"; fi
        {
            printf '%s %s%s\n' "$4" "$block_begin" "$5"
            cat "$work/block"
            printf '%s %s%s\n' "$4" "$block_end" "$5"
        } >"$work/marked"
        awk -v where="$2" -v line="$3" -v file="$work/marked" '
            function insert() { while ((getline text < file) > 0) print text; done = 1 }
            { trimmed = $0; gsub(/^[ \t]+|[ \t\r]+$/, "", trimmed) }
            !done && where == "before" && trimmed == line { insert() }
            { print }
            !done && where == "after" && trimmed == line { insert() }
            END { if (!done && where == "end") insert(); exit !done }' "$work/rest" >"$work/content" || return 1
        keep "$1" block
        cmp -s "$work/content" "$root$1" || cat "$work/content" >"$root$1" || fail "cannot write $root$1"
        say "  $1 (a block)"
    }

    # Whether a file has a line "NAME = …" outside our block.
    has_setting() {
        [ -e "$root$1" ] && without_block <"$root$1" | grep -q "^[[:space:]]*$2[[:space:]]*="
    }

    """#
