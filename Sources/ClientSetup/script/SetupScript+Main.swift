/// The actions of the script: printing, setting up, undoing.
let setupScriptMain = #"""
    print_settings() {
        hex=$(printf '%s' "${fingerprints:-HEX}" | tr '\n' ',')
        if [ "$has_authority" = yes ]; then options=" --ca-sha256 $hex"; else options=; fi
        case $form in
        sh) sh_settings ;;
        fish) fish_settings ;;
        env) all_variables as_env ;;
        java) java_options ;;
        systemd)
            echo "[Service]"
            all_variables as_systemd
            ;;
        dockerfile)
            echo "# Behind the packages that bring ca-certificates, and before the first line that downloads."
            if [ "$has_authority" = yes ]; then
                echo "ADD $proxy_url/setup.sh $proxy_url/ca.pem /tmp/larder/"
                echo "RUN sh /tmp/larder/setup.sh --ca-file /tmp/larder/ca.pem$options && rm -r /tmp/larder"
            fi
            all_variables as_dockerfile
            ;;
        # The variables come after the files: what runs before them, such as the checkout, must not miss a file.
        github)
            echo "steps:"
            echo "  - run: |"
            echo "      curl -fsS --noproxy '*' -o /tmp/larder-setup.sh $proxy_url/setup.sh"
            echo "      sudo sh /tmp/larder-setup.sh$options"
            echo "      sudo sh /tmp/larder-setup.sh --print env >> \"\$GITHUB_ENV\""
            ;;
        gitlab)
            echo "before_script:"
            echo "  - curl -fsS --noproxy '*' $proxy_url/setup.sh | sh -s --$options"
            echo "  - . /etc/profile.d/larder.sh"
            ;;
        esac
    }

    install() {
        if [ "$has_authority" = yes ]; then
            get_authority
        elif [ -n "$fingerprints" ]; then
            fail "the proxy at $proxy_at has no certificate authority. Nothing was changed."
        fi
        begin_record
        say "Setting up the proxy at $proxy_at:"
        if [ "$has_authority" = yes ]; then install_authority; fi
        set_up_tools
        write_variables
        say "Done. New logins have the variables. This shell has them after:"
        if [ "$scope" = system ]; then say "  . /etc/profile.d/larder.sh"; else say "  . $directory/settings.sh"; fi
        say "Services that run need a restart. \"larder doctor\" shows what works."
    }

    undo() {
        if [ ! -e "$root$record" ]; then
            say "There is nothing to undo in $root$directory."
            return
        fi
        say "Taking back what was set up in $root$directory:"
        cp "$root$record" "$work/record" || fail "cannot read $root$record"
        # Backwards: what was made last goes first.
        awk '{ line[NR] = $0 } END { for (i = NR; i > 0; i--) print line[i] }' "$work/record" >"$work/backwards"
        while read -r kind path; do take_back "$kind" "$path" </dev/null; done <"$work/backwards"
        rm -rf "$root${backups:?}"
        rm -f "$root$record"
        while read -r kind path; do
            if [ "$kind" = directory ]; then rmdir "$root$path" 2>/dev/null; fi
        done <"$work/backwards"
        while read -r kind path; do
            if [ "$kind" = store ]; then update_store "$path" </dev/null; fi
        done <"$work/backwards"
        say "Done. Shells and services that run keep their variables until they end."
    }

    take_back() {
        case $1 in
        new) rm -f "$root$2" ;;
        old) restore "$2" ;;
        newblock)
            [ -e "$root$2" ] || return
            without_block <"$root$2" >"$work/content"
            if [ -s "$work/content" ]; then cat "$work/content" >"$root$2"; else rm -f "$root$2"; fi
            ;;
        oldblock)
            [ -e "$root$2" ] || return
            without_block <"$root$2" >"$work/content"
            # The last line may have had no end.
            if { cat "$(backup_of "$2")" && echo; } | cmp -s - "$work/content"; then
                restore "$2"
            else
                cat "$work/content" >"$root$2"
            fi
            ;;
        nss)
            number=1
            while certutil -D -d "sql:$2" -n "Larder setup $number" 2>/dev/null; do number=$((number + 1)); done
            ;;
        newnss)
            if [ -z "$(certutil -L -d "sql:$2" 2>/dev/null | sed -n '5,$p')" ]; then
                rm -f "$2/cert9.db" "$2/key4.db" "$2/pkcs11.txt"
            fi
            return
            ;;
        *) return ;;
        esac
        say "  $2"
    }

    restore() {
        if [ -e "$root$1" ] && [ ! -L "$root$1" ]; then
            cat "$(backup_of "$1")" >"$root$1" || warn "cannot restore $root$1"
        else
            cp -p "$(backup_of "$1")" "$root$1" || warn "cannot restore $root$1"
        fi
    }

    update_store() {
        if [ -n "$root" ]; then
            say "  then run $1 in $root"
        elif command -v "$1" >/dev/null 2>&1; then
            if [ "$1" = update-ca-certificates ]; then set -- "$1" --fresh; fi
            "$@" >/dev/null 2>&1 || warn "$1 failed"
            # Debian's store for Java keeps what leaves the system's.
            if [ -f /etc/ssl/certs/java/cacerts ] && command -v keytool >/dev/null 2>&1; then
                keytool -delete -alias debian:larder.pem -keystore /etc/ssl/certs/java/cacerts -storepass changeit \
                    >/dev/null 2>&1
            fi
        fi
    }

    main() {
        read_arguments "$@"
        choose_places
        case $action in
        print) print_settings ;;
        install | undo)
            work=$(mktemp -d) || fail "cannot make a temporary directory"
            trap 'rm -rf "$work"' EXIT
            trap 'exit 1' HUP INT TERM
            "$action"
            ;;
        esac
    }

    # The last line: a script that arrived in part does nothing.
    main "$@"

    """#
