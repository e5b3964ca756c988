/// The system's certificates, the bundle, and the trust store of Java.
let setupScriptTrust = #"""
    install_authority() {
        write_file "$authority" <"$work/ca.pem"
        [ "$scope" = system ] && install_in_system
        make_bundle
        make_trust_store
    }

    # Each row: the directory of the system's own certificates, how the name of ours ends, the program that makes the system read it.
    install_in_system() {
        while read -r anchors name program; do
            [ -d "$root$anchors" ] || continue
            # One file for each: Debian and Alpine read the first certificate of a file.
            number=1
            while [ -f "$work/chosen.$number" ]; do
                suffix=
                [ "$number" = 1 ] || suffix=-$number
                write_file "$anchors/larder$suffix.$name" <"$work/chosen.$number"
                number=$((number + 1))
            done
            remember store "$program"
            if [ -n "$root" ]; then
                say "  then run $program in $root"
            elif command -v "$program" >/dev/null 2>&1; then
                "$program" >"$work/log" 2>&1 </dev/null || warn "$program failed: $(cat "$work/log")"
            else
                warn "$program is missing: install the package ca-certificates, and run this again"
            fi
            return
        done <<END
    /etc/pki/ca-trust/source/anchors pem update-ca-trust
    /etc/ca-certificates/trust-source/anchors pem update-ca-trust
    /etc/pki/trust/anchors pem update-ca-certificates
    /usr/local/share/ca-certificates crt update-ca-certificates
    END
        if [ -f "$root/etc/ssl/cert.pem" ]; then
            write_block /etc/ssl/cert.pem end '' '#' '' <"$work/ca.pem"
        else
            warn "this system has no directory for certificates: install the package ca-certificates, and run this again"
        fi
    }

    # The file in which the system has all the certificates that it trusts.
    find_system_bundle() {
        for file in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem \
            /etc/ssl/cert.pem; do
            [ -s "$root$file" ] || continue
            printf '%s' "$file"
            return
        done
    }

    # Whether a file has all lines of our certificates.
    has_authority_in() {
        [ "$(sort -u "$work/ca.lines" | grep -cxF -f - "$1" || :)" -ge "$(sort -u "$work/ca.lines" | grep -c .)" ]
    }

    # Most programs trust only what the file says that they are given, so it has to hold the system's certificates too. Where the system has
    # ours among its own, the bundle is a link, and follows the updates of the system.
    make_bundle() {
        system_bundle=$(find_system_bundle)
        if [ -n "$system_bundle" ] && [ "$scope" = system ] && [ -z "$root" ] && has_authority_in "$system_bundle"; then
            keep "$bundle" ''
            ln -sfn "$system_bundle" "$bundle" || fail "cannot write $bundle"
            say "  $bundle (a link to $system_bundle)"
            return
        fi
        if [ -z "$system_bundle" ]; then
            warn "this system has no certificates: programs will trust this proxy alone. Install the package ca-certificates."
            write_file "$bundle" <"$work/ca.pem"
        else
            cat "$root$system_bundle" "$work/ca.pem" | write_file "$bundle"
        fi
    }

    # A Java that does not use the system's certificates gets a copy of its own with ours.
    make_trust_store() {
        [ -z "$root" ] && command -v java >/dev/null 2>&1 || return
        java_home=$(java -XshowSettings:properties -version 2>&1 </dev/null | sed -n 's/^ *java\.home = //p')
        cacerts=$java_home/lib/security/cacerts
        [ -f "$cacerts" ] || return
        if ! command -v keytool >/dev/null 2>&1; then
            warn "there is no keytool: Java trusts the proxy only if the system's certificates are its own"
            return
        fi
        have=$(keytool -list -keystore "$cacerts" -storepass changeit 2>/dev/null </dev/null | tr -d ': ' | tr 'A-F' 'a-f')
        for fingerprint in $fingerprints; do
            case $have in
            *"$fingerprint"*) return ;;
            esac
        done
        rm -f "$work/store"
        cp "$cacerts" "$work/store" && chmod u+w "$work/store"
        number=1
        while [ -f "$work/chosen.$number" ]; do
            keytool -importcert -noprompt -trustcacerts -alias "larder-$number" -file "$work/chosen.$number" \
                -keystore "$work/store" -storepass changeit >/dev/null 2>&1 </dev/null || {
                warn "keytool cannot add the certificate to a copy of $cacerts"
                return
            }
            number=$((number + 1))
        done
        write_file "$trust_store" <"$work/store"
    }

    """#
