import ClientSetup
import Foundation
import Glibc
import Message
import ProgramUnderTest
import TLS
import Testing

/// Whether this process may have file systems of its own, so that /etc can be changed without changing it for others.
private let mayMount: Bool = {
    guard geteuid() == 0, has("unshare"), has("update-ca-certificates"), has("openssl") else { return false }
    let command =
        "mount -t tmpfs none /mnt && mkdir /mnt/u /mnt/w && mount -t overlay o -o lowerdir=/etc,upperdir=/mnt/u,workdir=/mnt/w /etc"
    guard let program = try? Program(["unshare", "-m", "sh", "-c", command], logs: nil) else { return false }
    return program.end(within: 30) == 0
}()

@Suite("setup.sh on a real system")
struct LiveSetupTests {
    @Test(.enabled(if: mayMount, "root, unshare, overlayfs, packages ca-certificates and openssl"))
    func `the system trusts the authority, Java too, and does not after --undo`() throws {
        try ScriptRoom.with { room in
            let request = try room.run(
                ["openssl"],
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-keyout", room.path("key.pem"), "-out", room.path("ca.pem"), "-subj", "/CN=Larder setup test",
                ])
            try #require(request.status == 0, "\(request)")
            let der = try #require(PEMCertificates.read(room.read("ca.pem")!.utf8).first)
            let hex = Digest.sha256(der).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            try room.write(
                "live.sh",
                """
                set -e
                mount -t tmpfs none /mnt
                for dir in etc usr/local; do
                    mkdir -p /mnt/$dir.upper /mnt/$dir.work
                    mount -t overlay overlay -o lowerdir=/$dir,upperdir=/mnt/$dir.upper,workdir=/mnt/$dir.work /$dir
                done
                store=/etc/ssl/certs/java/cacerts
                in_java() {
                    if [ -f $store ] && command -v keytool >/dev/null; then
                        keytool -list -keystore $store -storepass changeit 2>/dev/null | grep -c '^debian:larder.pem' || true
                    else
                        echo $1
                    fi
                }
                cd \(room.directory)
                sh setup.sh --ca-file ca.pem --ca-sha256 \(hex) >said
                openssl verify ca.pem
                echo java $(in_java 1)
                readlink /etc/larder/ca-bundle.pem
                sh setup.sh --undo >>said
                if openssl verify ca.pem >/dev/null 2>&1; then echo still trusted; else echo not trusted; fi
                echo java $(in_java 0)
                ls /etc/larder 2>/dev/null || echo nothing left
                """)
            let outcome = try room.run(["unshare", "-m", "sh"], [room.path("live.sh")])
            #expect(
                outcome.out == """
                    ca.pem: OK
                    java 1
                    /etc/ssl/certs/ca-certificates.crt
                    not trusted
                    java 0
                    nothing left

                    """, "\(outcome)")
        }
    }
}

@Suite("truststore.jks")
struct TrustStoreTests {
    /// The certificates of this machine: real ones, of all kinds.
    static let roots: [[UInt8]] = PEMCertificates.read(
        FileManager.default.contents(atPath: "/etc/ssl/certs/ca-certificates.crt").map { Array($0) } ?? [])

    static func store() throws -> [UInt8] {
        let pages = Pages(
            roots: [try #require(roots.first)], systemRoots: roots, now: WallTime(secondsSinceEpoch: 784_111_777),
            sha1: Digest.sha1)
        guard case .page(let page) = pages.answer(.trustStore, place: nil) else { throw ScriptRoom.Unmade() }
        return page.body
    }

    @Test(.enabled(if: has("keytool") && !roots.isEmpty, "a JRE, package ca-certificates"))
    func `Java reads every certificate, and sees damage`() throws {
        try ScriptRoom.with { room in
            var store = try Self.store()
            let list = ["-list", "-storepass", JavaKeyStore.password, "-keystore", room.path("store")]
            try Data(store).write(to: URL(filePath: room.path("store")))
            let read = try room.run(["keytool"], list)
            #expect(read.status == 0 && read.out.contains("contains \(Self.roots.count) entries"), "\(read)")
            #expect(read.out.contains("larder-1, ") && read.out.contains("trustedCertEntry"))

            store[store.count / 2] ^= 1
            try Data(store).write(to: URL(filePath: room.path("store")))
            #expect(try room.run(["keytool"], list).status != 0)
        }
    }
}
