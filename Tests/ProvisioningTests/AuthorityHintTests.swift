import Glibc
import Provisioning
import TLS
import Testing

@Suite("Provisioning: what mends an authority") struct AuthorityHintTests {
    static let rows: [(error: AuthorityError, hint: String?)] = [
        (.keyExposed(path: "/a/b.key", mode: 0o644), "run: chmod 600 /a/b.key"),
        (.keyExposed(path: "/a b/$(x)'y", mode: 0o644), "run: chmod 600 '/a b/$(x)'\\''y'"),
        (.keyOwnedByAnother(path: "/a;b", owner: 1), "run: chown \(geteuid()) '/a;b'"),
        (.fileUnreadable(path: "/a", errno: ENOENT), "run: larder ca create"),
        (.fileUnreadable(path: "/a", errno: EACCES), nil),
        (.expired(path: "/a", subject: "CN=a", notAfter: 0), "run: larder ca rotate"),
    ]

    @Test(arguments: rows) func `a command can be copied into a shell`(_ row: (error: AuthorityError, hint: String?)) {
        #expect(row.error.hint == row.hint)
    }
}
