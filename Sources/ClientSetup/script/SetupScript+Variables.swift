/// The variables, in the form of each shell.
let setupScriptVariables = #"""
    # Calls $1 with name and value of each variable of one kind. $2: proxy, or authority.
    each_variable() {
        while read -r kind name value; do
            [ "$kind" = "$2" ] || continue
            case $value in
            @proxy) value=$proxy_url ;;
            @exceptions) value=$exceptions ;;
            @bundle) value=$bundle ;;
            @authority) value=$authority ;;
            @java)
                is_installed java || continue
                value=$(java_options | tr '\n' ' ' | sed 's/ $//')
                ;;
            esac
            "$1" "$name" "$value"
        done <<END
    $(variables)
    END
    }

    all_variables() {
        each_variable "$1" proxy
        if [ "$has_authority" = yes ]; then each_variable "$1" authority; fi
    }

    as_sh() { printf "export %s='%s'\n" "$1" "$2"; }
    as_guarded_sh() { printf "    export %s='%s'\n" "$1" "$2"; }
    as_fish() { printf "set -gx %s '%s'\n" "$1" "$2"; }
    as_guarded_fish() { printf "    set -gx %s '%s'\n" "$1" "$2"; }
    as_env() { printf '%s=%s\n' "$1" "$2"; }
    as_quoted_env() { printf '%s="%s"\n' "$1" "$2"; }
    as_systemd() { printf 'Environment="%s=%s"\n' "$1" "$2"; }
    as_dockerfile() { printf 'ENV %s="%s"\n' "$1" "$2"; }

    # A program fails if a variable names a file that is not there. So the files come first, and a shell looks for them each time.
    sh_settings() {
        echo "# Written by setup.sh of the Larder proxy at $proxy_at. Its --undo removes this."
        each_variable as_sh proxy
        [ "$has_authority" = yes ] || return 0
        echo "if [ -r '$bundle' ] && [ -r '$authority' ]; then"
        each_variable as_guarded_sh authority
        echo "fi"
    }

    fish_settings() {
        echo "# Written by setup.sh of the Larder proxy at $proxy_at. Its --undo removes this."
        each_variable as_fish proxy
        [ "$has_authority" = yes ] || return 0
        echo "if test -r '$bundle' -a -r '$authority'"
        each_variable as_guarded_fish authority
        echo "end"
    }

    write_variables() {
        if [ "$scope" = system ]; then
            sh_settings | write_file /etc/profile.d/larder.sh
            if is_installed fish; then fish_settings | write_file /etc/fish/conf.d/larder.fish; fi
            # PAM sets these for every login, and for cron.
            if [ -e "$root/etc/environment" ]; then
                all_variables as_quoted_env | write_block /etc/environment end '' '#' ''
            fi
            return
        fi
        sh_settings | write_file "$directory/settings.sh"
        all_variables as_quoted_env | write_file "$configuration/environment.d/60-larder.conf"
        if is_installed fish; then fish_settings | write_file "$configuration/fish/conf.d/larder.fish"; fi
        # A login shell reads one of the first three, other shells read the others.
        source_in "$HOME/.profile"
        for file in "$HOME/.bash_profile" "$HOME/.bash_login" "$HOME/.bashrc" "$HOME/.zshenv"; do
            [ ! -e "$file" ] || source_in "$file"
        done
        if is_installed zsh && [ ! -e "$HOME/.zshenv" ]; then source_in "$HOME/.zshenv"; fi
    }

    # A shell that is not interactive leaves ~/.bashrc at one of its first lines, so the block comes at the end all the same: such a shell
    # has the variables from the one that started it.
    source_in() {
        echo "if [ -r '$directory/settings.sh' ]; then . '$directory/settings.sh'; fi" | write_block "$1" end '' '#' ''
    }

    """#
