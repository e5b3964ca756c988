/// The options of the script, and where its files are.
let setupScriptArguments = #"""
    usage() {
        cat <<END
    Sets up this machine to use the Larder proxy at $proxy_at.

      sh setup.sh --ca-sha256 HEX [--no-proxy LIST]    set it up
      sh setup.sh --print FORM                         print settings, and change nothing
      sh setup.sh --undo                               take everything back

      --ca-sha256 HEX   SHA-256 of the root certificate in DER. "larder serve" and "larder ca show" print it. Several are
                        separated by commas. A certificate of the proxy that is none of them is refused.
      --ca-file FILE    read the certificate from a file instead of the proxy
      --no-proxy LIST   names and addresses that are reached directly, separated by commas
      --print FORM      sh, fish, env, systemd, dockerfile, github, gitlab or java
      --user            set up this user, even as root. The default for root is the whole machine.
      --root DIR        write below DIR, such as the root of an image, and run nothing that changes this machine
      --undo            remove what an earlier run wrote, and restore what it changed
    END
    }

    say() { printf '%s\n' "$*"; }
    warn() { printf 'setup.sh: %s\n' "$*" >&2; }
    fail() {
        warn "$*"
        exit 1
    }
    misuse() {
        warn "$*"
        warn "sh setup.sh --help shows the options"
        exit 2
    }

    read_arguments() {
        action=install
        form=
        fingerprints=
        authority_file=
        exceptions=localhost,127.0.0.1,::1
        case ,$exceptions, in
        *",$proxy_host,"*) ;;
        *) exceptions=$exceptions,$proxy_host ;;
        esac
        root=
        if [ "$(id -u)" = 0 ]; then scope=system; else scope=user; fi
        while [ $# -gt 0 ]; do
            case $1 in
            --help | -h)
                usage
                exit 0
                ;;
            --undo)
                action=undo
                shift
                ;;
            --user)
                scope=user
                shift
                ;;
            --ca-sha256 | --ca-file | --no-proxy | --print | --root)
                [ $# -ge 2 ] || misuse "$1 needs a value"
                read_option "$1" "$2"
                shift 2
                ;;
            --ca-sha256=* | --ca-file=* | --no-proxy=* | --print=* | --root=*)
                read_option "${1%%=*}" "${1#*=}"
                shift
                ;;
            *) misuse "unknown option $1" ;;
            esac
        done
    }

    read_option() {
        case $1 in
        --ca-sha256)
            fingerprints=$(printf '%s' "$2" | tr -d ': ' | tr 'A-F,' 'a-f\n')
            for fingerprint in $fingerprints; do
                case $fingerprint in
                *[!0-9a-f]*) misuse "--ca-sha256 takes 64 hexadecimal digits" ;;
                esac
                [ ${#fingerprint} -eq 64 ] || misuse "--ca-sha256 takes 64 hexadecimal digits"
            done
            [ -n "$fingerprints" ] || misuse "--ca-sha256 takes 64 hexadecimal digits"
            ;;
        --ca-file) authority_file=$2 ;;
        --no-proxy)
            case $2 in
            *[!A-Za-z0-9.,:/*_-]*) misuse "--no-proxy takes names and addresses, separated by commas" ;;
            esac
            exceptions=$exceptions${2:+,$2}
            ;;
        --print)
            case $2 in
            sh | fish | env | systemd | dockerfile | github | gitlab | java) form=$2 ;;
            *) misuse "--print takes sh, fish, env, systemd, dockerfile, github, gitlab or java" ;;
            esac
            action=print
            ;;
        --root)
            [ -d "$2" ] || misuse "--root: there is no directory $2"
            root=$(CDPATH='' cd -- "$2" && pwd)
            if [ "$root" = / ]; then root=; else scope=system; fi
            ;;
        esac
    }

    # Where the files are. The names go into settings of many forms, so they may not need quotes in any of them.
    choose_places() {
        if [ "$scope" = system ]; then
            directory=/etc/larder
        else
            : "${HOME:?}"
            configuration=${XDG_CONFIG_HOME:-$HOME/.config}
            directory=$configuration/larder
        fi
        case $directory in
        /*) ;;
        *) fail "XDG_CONFIG_HOME and HOME must be absolute: $directory" ;;
        esac
        case $directory in
        *[!A-Za-z0-9/._+@-]*) fail "a directory with such a name cannot be used in all settings: $directory" ;;
        esac
        authority=$directory/ca.pem
        bundle=$directory/ca-bundle.pem
        trust_store=$directory/truststore.jks
        record=$directory/setup.record
        backups=$directory/setup.backups
        proxy_url=http://$proxy_at
    }

    # Whether a program is installed, on this machine or below --root.
    is_installed() {
        if [ -z "$root" ]; then
            command -v "$1" >/dev/null 2>&1
            return
        fi
        for place in /usr/local/bin /usr/bin /bin /usr/sbin /sbin; do
            [ -x "$root$place/$1" ] && return
        done
        return 1
    }

    """#
