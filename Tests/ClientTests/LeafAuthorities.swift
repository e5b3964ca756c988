import COpenSSL
import Foundation
import TLS
import Testing

/// An authority in a directory, and leaves that it signed in `leaves/HOST.pem` and `leaves/HOST.key`.
struct LeafAuthority {
    let place: Workplace
    let directory: String
    var root: String { "\(directory)/root.pem" }
    var leaves: String { "\(directory)/leaves" }

    /// What `larder ca create` makes.
    static func made(in place: Workplace, _ name: String, _ options: String...) async throws -> LeafAuthority {
        let directory = place.path(name)
        let made = try await place.run(
            Larder.executable, ["ca", "create", "--out", directory, "--config", "/dev/null"] + options)
        try #require(made.status == 0, "\(made)")
        try place.makeDirectory("\(name)/leaves")
        return LeafAuthority(place: place, directory: directory)
    }

    /// What others make with OpenSSL: constraints in the root or in the intermediate alone.
    static func foreign(in place: Workplace, _ name: String, root: String, intermediate: String) async throws
        -> LeafAuthority
    {
        let script = #"""
            set -e; umask 077; mkdir -p "$1/leaves"; cd "$1"
            printf '[req]\ndistinguished_name=d\n[d]\n' > cnf
            printf 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash\n' > ext
            (cat ext; echo "$2") > root.ext
            (cat ext; echo authorityKeyIdentifier=keyid; echo "$3") > intermediate.ext
            for name in root intermediate; do
                openssl ecparam -name prime256v1 -genkey -noout -out $name.key
                openssl req -config cnf -new -key $name.key -subj "/O=Others/CN=$name $(basename "$1")" -out $name.csr
            done
            openssl x509 -req -in root.csr -signkey root.key -days 300 -extfile root.ext -out root.pem
            openssl x509 -req -in intermediate.csr -CA root.pem -CAkey root.key -days 300 -extfile intermediate.ext -out own.pem
            cat own.pem root.pem > intermediate.pem
            """#
        let authority = LeafAuthority(place: place, directory: place.path(name))
        let made = try await place.run("sh", ["-c", script, "sh", authority.directory, root, intermediate])
        try #require(made.status == 0, "\(made)")
        return authority
    }

    /// Leaves as Larder issues them.
    func issue(_ hosts: String...) throws {
        let now = Int64(Date().timeIntervalSince1970)
        let authority = try CertificateAuthority(
            certificateFile: "\(directory)/intermediate.pem", keyFile: "\(directory)/intermediate.key", at: now)
        for host in hosts {
            let leaf = try authority.issue(try #require(LeafName(host: host)), at: now)
            try Data(leaf.pem).write(to: URL(fileURLWithPath: "\(leaves)/\(host).pem"))
            try Data(keyPEM(of: leaf)).write(to: URL(fileURLWithPath: "\(leaves)/\(host).key"))
        }
    }

    private func keyPEM(of leaf: Leaf) -> [UInt8] {
        let bio = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free(bio) }
        _ = unsafe PEM_write_bio_PrivateKey(bio, leaf.key, nil, nil, 0, nil, nil)
        var text = [UInt8](repeating: 0, count: 4096)
        let count = unsafe BIO_read(bio, &text, CInt(text.count))
        return Array(text.prefix(Int(count)))
    }

    /// Leaves as somebody who has stolen the key would sign them: for hosts that the constraints forbid.
    func forge(_ hosts: String...) async throws {
        let script = #"""
            set -e; umask 077; cd "$1"; host="$2"; out="leaves/$2"
            case "$host" in *[g-z]*) kind=DNS ;; *) kind=IP ;; esac
            printf '[req]\ndistinguished_name=d\n[d]\n' > cnf
            printf 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\n' > ext
            printf 'authorityKeyIdentifier=keyid\nsubjectAltName=critical,%s:%s\n' $kind "$host" >> ext
            openssl ecparam -name prime256v1 -genkey -noout -out "$out.key"
            openssl req -config cnf -new -key "$out.key" -subj / -out csr
            openssl x509 -req -in csr -CA intermediate.pem -CAkey intermediate.key -days 6 -extfile ext -out leaf
            (cat leaf; openssl x509 -in intermediate.pem) > "$out.pem"
            """#
        for host in hosts {
            let made = try await place.run("sh", ["-c", script, "sh", directory, host])
            try #require(made.status == 0, "\(made)")
        }
    }
}
