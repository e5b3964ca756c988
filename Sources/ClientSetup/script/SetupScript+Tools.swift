/// The settings of tools that read files.
let setupScriptTools = #"""
    # The exceptions of --no-proxy in the form of apt: each host alone.
    apt_exceptions() {
        for name in $(printf '%s' "$exceptions" | tr ',' ' '); do
            case $name in
            .* | *[*/:]*) continue ;;
            esac
            echo "Acquire::http::Proxy::$name \"DIRECT\";"
            echo "Acquire::https::Proxy::$name \"DIRECT\";"
        done
    }

    apt_settings() {
        echo "Acquire::http::Proxy \"$proxy_url\";"
        echo "Acquire::https::Proxy \"$proxy_url\";"
        apt_exceptions
    }

    # The same for Java: "|" between them, and "*" where other programs mean every name below.
    java_exceptions() {
        printf '%s' "$exceptions" | tr ',' '\n' | while read -r name || [ -n "$name" ]; do
            case $name in
            '' | */*) continue ;;
            *:*) printf '[%s]|' "$name" ;;
            '*' | '*'*) printf '%s|' "$name" ;;
            .*) printf '*%s|' "$name" ;;
            *[!0-9.]*) printf '%s|*.%s|' "$name" "$name" ;;
            *) printf '%s|' "$name" ;;
            esac
        done | sed 's/|$//'
    }

    # The options of a Java virtual machine, one in a line.
    java_options() {
        for scheme in http https; do
            echo "-D$scheme.proxyHost=$proxy_host"
            echo "-D$scheme.proxyPort=$proxy_port"
        done
        echo "-Dhttp.nonProxyHosts=$(java_exceptions)"
        [ -f "$root$trust_store" ] || return 0
        echo "-Djavax.net.ssl.trustStore=$trust_store"
        echo "-Djavax.net.ssl.trustStorePassword=changeit"
    }

    maven_proxies() {
        for scheme in http https; do
            cat <<END
        <proxy>
          <id>larder-$scheme</id>
          <active>true</active>
          <protocol>$scheme</protocol>
          <host>$proxy_host</host>
          <port>$proxy_port</port>
          <nonProxyHosts>$(java_exceptions)</nonProxyHosts>
        </proxy>
    END
        done
    }

    # Maven takes the first active proxy of each protocol. $1: settings.xml.
    set_up_maven() {
        if [ ! -e "$root$1" ] || ! without_block <"$root$1" | grep -q .; then
            {
                echo "<settings>"
                echo "  <proxies>"
                maven_proxies
                echo "  </proxies>"
                echo "</settings>"
            } | write_file "$1"
            return
        fi
        maven_proxies | write_block "$1" after '<proxies>' '<!--' ' -->' && return
        {
            echo "  <proxies>"
            maven_proxies
            echo "  </proxies>"
        } | write_block "$1" before '</settings>' '<!--' ' -->' ||
            warn "$1 was left alone: it has no line with <proxies> or </settings>"
    }

    set_up_dnf() {
        if has_setting /etc/dnf/dnf.conf proxy; then
            warn "/etc/dnf/dnf.conf was left alone: it sets a proxy already"
            return
        fi
        echo "proxy=$proxy_url" | write_block /etc/dnf/dnf.conf after '[main]' '#' '' ||
            warn "/etc/dnf/dnf.conf was left alone: it has no line [main]"
    }

    set_up_wget() {
        if has_setting "$HOME/.wgetrc" ca_certificate; then
            warn "$HOME/.wgetrc was left alone: it sets ca_certificate already"
            return
        fi
        echo "ca_certificate = $bundle" | write_block "$HOME/.wgetrc" end '' '#' ''
    }

    set_up_aria2() {
        file=$HOME/.aria2/aria2.conf
        [ -e "$file" ] || file=$configuration/aria2/aria2.conf
        if has_setting "$file" ca-certificate; then
            warn "$file was left alone: it sets ca-certificate already"
            return
        fi
        echo "ca-certificate=$bundle" | write_block "$file" end '' '#' ''
    }

    # A policy for every user of Chromium. The certificates are in base 64 without line ends.
    chromium_policy() {
        printf '{\n  "ProxySettings": { "ProxyMode": "fixed_servers", "ProxyServer": "%s", "ProxyBypassList": "%s" }' \
            "$proxy_at" "$exceptions"
        if [ "$has_authority" = yes ]; then
            printf ',\n  "CACertificates": [ '
            number=1
            while [ -f "$work/chosen.$number" ]; do
                [ "$number" = 1 ] || printf ', '
                printf '"%s"' "$(grep -v -e -- "$work/chosen.$number" | tr -d '\n')"
                number=$((number + 1))
            done
            printf ' ]'
        fi
        printf '\n}\n'
    }

    # A policy for every user of Firefox. It takes one certificate from each file.
    firefox_policy() {
        printf '{ "policies": {\n  "Proxy": { "Mode": "manual", "HTTPProxy": "%s", "UseHTTPProxyForAllProtocols": true, "Passthrough": "%s" }' \
            "$proxy_at" "$exceptions"
        if [ "$has_authority" = yes ]; then
            printf ',\n  "Certificates": { "Install": [ '
            number=1
            while [ -f "$work/chosen.$number" ]; do
                [ "$number" = 1 ] || printf ', '
                printf '"%s"' "$directory/ca-$number.pem"
                number=$((number + 1))
            done
            printf ' ] }'
        fi
        printf '\n} }\n'
    }

    # Firefox reads one file of policies alone.
    set_up_firefox() {
        file=/etc/firefox/policies/policies.json
        if [ -e "$root$file" ] && ! is_remembered "$file"; then
            warn "$file was left alone: it has policies already. Add Proxy and Certificates to them by hand."
            return
        fi
        number=1
        while [ -f "$work/chosen.$number" ]; do
            write_file "$directory/ca-$number.pem" <"$work/chosen.$number"
            number=$((number + 1))
        done
        firefox_policy | write_file "$file"
    }

    # The database in which Chromium looks for certificates of this user: the first one, if it is there, otherwise, in newer versions, the second.
    set_up_nss() {
        database=$HOME/.pki/nssdb
        newer=${XDG_DATA_HOME:-$HOME/.local/share}/pki/nssdb
        if [ ! -d "$database" ] && [ -f "$newer/cert9.db" ]; then database=$newer; fi
        if [ ! -f "$database/cert9.db" ]; then
            make_directory "$HOME/.pki"
            make_directory "$database"
            certutil -N -d "sql:$database" --empty-password </dev/null || return 0
            remember newnss "$database"
        fi
        number=1
        while [ -f "$work/chosen.$number" ]; do
            certutil -D -d "sql:$database" -n "Larder setup $number" 2>/dev/null
            certutil -A -d "sql:$database" -n "Larder setup $number" -t C,, -i "$work/chosen.$number" ||
                warn "certutil cannot add the certificate to $database"
            number=$((number + 1))
        done
        remember nss "$database"
        say "  $database"
    }

    """#
