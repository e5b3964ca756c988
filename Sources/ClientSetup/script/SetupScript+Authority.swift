/// Gets Larder's certificates, and accepts those alone whose SHA-256 was given.
let setupScriptAuthority = #"""
    # Gets the certificates of the proxy, and keeps those with a fingerprint that was given: in $work/chosen.1 and so on, together in
    # $work/ca.pem, and the lines of their base 64 in $work/ca.lines. Nothing has been changed when this fails.
    get_authority() {
        [ -n "$fingerprints" ] || fail "--ca-sha256 is missing. \"larder serve\" and \"larder ca show\" print the value."
        if [ -n "$authority_file" ]; then
            cat -- "$authority_file" >"$work/received" || fail "cannot read $authority_file"
        else
            fetch /ca.pem "$work/received" || fail "cannot get http://$proxy_at/ca.pem"
        fi
        split_certificates
        : >"$work/ca.pem"
        : >"$work/ca.lines"
        number=1
        chosen=0
        seen=
        while [ -f "$work/certificate.$number" ]; do
            fingerprint=$(sha256_of_base64 "$work/certificate.$number") || fail "cannot compute SHA-256"
            seen="$seen $fingerprint"
            for wanted in $fingerprints; do
                [ "$fingerprint" = "$wanted" ] || continue
                chosen=$((chosen + 1))
                {
                    echo '-----BEGIN CERTIFICATE-----'
                    cat "$work/certificate.$number"
                    echo '-----END CERTIFICATE-----'
                } >"$work/chosen.$chosen"
                cat "$work/chosen.$chosen" >>"$work/ca.pem"
                cat "$work/certificate.$number" >>"$work/ca.lines"
            done
            number=$((number + 1))
        done
        [ -s "$work/ca.pem" ] && return
        warn "the certificate of $proxy_at is not the one that --ca-sha256 names. Nothing was changed."
        for fingerprint in $fingerprints; do warn "  expected $fingerprint"; done
        for fingerprint in $seen; do warn "  received $fingerprint"; done
        [ -n "$seen" ] || warn "  received no certificate"
        exit 1
    }

    # Writes the base 64 of each certificate into a file of its own. Only base 64 that every program decodes to the same bytes is accepted:
    # whole groups of four, padding at the end alone, lines of at most 64.
    split_certificates() {
        tr -d '\r' <"$work/received" | awk -v name="$work/certificate." '
            $0 == "-----BEGIN CERTIFICATE-----" { if (inside) exit 1; inside = 1; text = ""; next }
            $0 == "-----END CERTIFICATE-----" {
                if (!inside || text == "" || length(text) % 4 != 0) exit 1
                if (text !~ /^[A-Za-z0-9+\/]+=?=?$/) exit 1
                file = name (++count)
                while (text != "") { print substr(text, 1, 64) > file; text = substr(text, 65) }
                close(file); inside = 0; next
            }
            inside { text = text $0 }' || fail "http://$proxy_at/ca.pem is damaged. Nothing was changed."
    }

    # SHA-256 of what a file with base 64 stands for, with whatever program is there.
    sha256_of_base64() {
        if command -v sha256sum >/dev/null 2>&1 && command -v base64 >/dev/null 2>&1; then
            base64 -d <"$1" | sha256sum | cut -c 1-64
        elif command -v openssl >/dev/null 2>&1; then
            openssl base64 -d -in "$1" | openssl dgst -sha256 -r | cut -c 1-64
        elif command -v python3 >/dev/null 2>&1; then
            python3 -c 'import base64, hashlib, sys
    print(hashlib.sha256(base64.b64decode(open(sys.argv[1]).read())).hexdigest())' "$1"
        else
            warn "this needs sha256sum and base64, or openssl, or python3"
            return 1
        fi
    }

    # Gets a page of the proxy, around any proxy that is configured.
    fetch() {
        if command -v curl >/dev/null 2>&1; then
            curl -q -fsS -m 60 --noproxy '*' -o "$2" "http://$proxy_at$1"
        elif command -v wget >/dev/null 2>&1; then
            (
                unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
                wget -q -T 60 -O "$2" "http://$proxy_at$1"
            )
        elif command -v python3 >/dev/null 2>&1; then
            python3 -c 'import sys, urllib.request as r
    open(sys.argv[2], "wb").write(r.build_opener(r.ProxyHandler({})).open(sys.argv[1], timeout=60).read())' \
                "http://$proxy_at$1" "$2"
        else
            warn "this needs curl, wget or python3, or the certificate in a file: --ca-file FILE"
            return 1
        fi
    }

    """#
